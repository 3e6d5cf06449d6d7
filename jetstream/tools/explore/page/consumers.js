// Pane 3: a consumer on simulated time, as a timeline.

import { $, draw, make } from "./dom.js";

const FAULTS = [
  ["silence", "the network is silent", 5, 4], ["cut", "the connection breaks", 9, 1.5],
  ["lose_leader", "the stream loses its leader", 6, 2], ["freeze", "JetStream freezes", 8, 4],
  ["drop_next_pull", "a pull is lost", 3, 0], ["drop_next_ack", "an acknowledgment is lost", 2, 0],
  ["stall", "the program is blocked", 7, 3],
];
const LANES = [
  ["fault", "faults"], ["connection", "connection"], ["pull", "pulls"], ["status", "statuses"],
  ["heartbeat", "heartbeats"], ["message", "messages"], ["ack", "acks"], ["call", "API calls"], ["note", "notes"],
];
const LANE_OF = { response: "call", subscribe: "call", unsubscribe: "call", publish: "ack", error: "status" };
const [LEFT, WIDTH, LANE, CHART] = [92, 1100, 24, 130];

export function startConsumers(lab, rules, readers) {
  readers.forEach((reader) => $("consumers-reader").append(make("option", {}, reader)));
  for (const [name, text, at, seconds] of FAULTS) {
    const box = make("input", { type: "checkbox", "data-fault": name });
    const when = make("input", { type: "number", min: 0, max: 60, step: 0.5, value: at, "aria-label": `when ${text}` });
    const long = make("input", { type: "number", min: 0, max: 30, step: 0.5, value: seconds, "aria-label": `how long ${text}` });
    const label = make("label", {}, box, ` ${text} at `, when, " s");
    if (seconds) {
      label.append(" for ", long, " s");
    }
    box.fault = () => ({ name, at: Number(when.value), seconds: Number(long.value) });
    label.oninput = run;
    $("consumers-faults").append(label);
  }
  for (const id of ["reader", "limit", "pause", "seconds"]) {
    $(`consumers-${id}`).oninput = run;
  }
  let shown = [];
  let chosen = 0;

  function run() {
    const boxes = [...document.querySelectorAll("[data-fault]")].filter((box) => box.checked);
    const choice = {
      reader: $("consumers-reader").value, limit: bounded("limit"), pause: bounded("pause"),
      seconds: bounded("seconds"), messages: 40, faults: boxes.map((box) => box.fault()),
    };
    const started = performance.now();
    const result = JSON.parse(lab.run(JSON.stringify(choice)));
    const took = performance.now() - started;
    const different = new Set(result.taken.map(([, seq]) => seq)).size;
    $("consumers-summary").textContent =
      `${result.stored} messages stored, ${different} received, ${result.taken.length - different} redelivered; `
      + `${result.seconds} simulated seconds in ${took.toFixed(0)} ms. ${result.error}`;
    shown = drawTimeline(result);
    shown.forEach(({ mark }, index) => {
      mark.onpointerenter = () => choose(index);
    });
    choose(Math.max(0, shown.findIndex(({ step }) => step.kind === "pull")));
  }

  function bounded(id) {
    const input = $(`consumers-${id}`);
    return Math.min(Number(input.max), Math.max(Number(input.min), Number(input.value)));
  }

  function choose(index) {
    if (!shown[index]) {
      return;
    }
    shown[chosen]?.mark.classList.remove("chosen");
    chosen = index;
    const { step, mark } = shown[index];
    mark.classList.add("chosen");
    const detail = $("consumers-step");
    detail.replaceChildren(make("b", {}, `${step.t.toFixed(2)} s  ${step.kind}`), ` ${step.note || step.text}`);
    if (step.wire) {
      detail.append(make("pre", {}, step.wire));
    }
    if (step.rule) {
      detail.append(rules.show(step.rule));
    }
  }

  $("consumers-time").onkeydown = (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1, Home: -chosen, End: shown.length - 1 - chosen }[event.key];
    if (move !== undefined) {
      event.preventDefault();
      choose(Math.min(shown.length - 1, Math.max(0, chosen + move)));
    }
  };
  run();
}

function drawTimeline(result) {
  const svg = $("consumers-time");
  const top = LANES.length * LANE + 20;
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${top + CHART + 30}`);
  svg.replaceChildren();
  const x = (time) => LEFT + (time / result.seconds) * (WIDTH - LEFT - 28);
  LANES.forEach(([, text], index) => {
    const y = 16 + index * LANE;
    svg.append(draw("line", { class: "lane", x1: LEFT, x2: WIDTH - 10, y1: y, y2: y }), label(4, y + 4, text));
  });
  drawLevels(svg, result, x, top);
  return result.steps.map((step) => {
    const lane = LANES.findIndex(([kind]) => kind === (LANE_OF[step.kind] || step.kind));
    const y = 16 + Math.max(0, lane) * LANE;
    const mark = draw("circle", { class: `mark ${step.kind}`, cx: x(step.t), cy: y, r: 5 },
      draw("title", {}, `${step.t.toFixed(2)} s ${step.kind}: ${step.text}`));
    svg.append(mark);
    return { step, mark };
  });
}

function drawLevels(svg, result, x, top) {
  const most = Math.max(result.limit, ...result.levels.map(([, level]) => level), 1);
  const y = (level) => top + CHART - (level / most) * (CHART - 10);
  const path = (column) => {
    let d = "";
    let last = 0;
    for (const row of result.levels) {
      d += d ? `H${x(row[0])}V${y(row[column])}` : `M${x(row[0])} ${y(row[column])}`;
      last = x(row[0]);
    }
    return d && `${d}H${Math.max(last, x(result.seconds))}`;
  };
  const area = path(1);
  if (area) {
    const begin = x(result.levels[0][0]);
    svg.append(draw("path", { class: "level", d: `${area}V${y(0)}H${begin}Z` }), draw("path", { class: "pending", d: path(2) }));
  }
  for (const [name, value] of [["limit", result.limit], ["threshold", result.threshold]]) {
    if (value) {
      svg.append(draw("line", { class: name, x1: LEFT, x2: WIDTH - 10, y1: y(value), y2: y(value) }),
        label(4, y(value) + 4, `${name} ${value}`));
    }
  }
  svg.append(label(4, top + CHART + 4, "level"));
  for (let second = 0; second <= result.seconds; second += Math.ceil(result.seconds / 20)) {
    svg.append(label(x(second) - 6, top + CHART + 22, `${second} s`, "soft"));
  }
}

function label(x, y, text, kind = "") {
  const element = draw("text", { x, y, class: kind });
  element.textContent = text;
  return element;
}
