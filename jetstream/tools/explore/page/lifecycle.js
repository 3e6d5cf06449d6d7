// Pane 2: a connection, driven by hand.

import { $, draw, make } from "./dom.js";

const PLACES = {
  NEW: [70, 40], WAITING: [240, 40], DIALING: [410, 40], OPENING: [560, 120],
  SECURING: [560, 240], SIGNING: [400, 145], GREETING: [390, 240], CONNECTED: [220, 240], CLOSED: [70, 150],
};
const INPUTS = [
  ["connect", "connect()"], ["transport_opened", "transport_opened()"], ["tls_started", "tls_started()"],
  ["nonce_signed", "nonce_signed()"],
  ["transport_closed", "transport_closed()"],
];
const COMMANDS = ["subscribe", "publish", "request", "close"];
const TIMES = ["+0.5", "+2", "+5"];
const [WIDTH, HEIGHT] = [108, 34];

export function startLifecycle(lab) {
  const table = JSON.parse(lab.table());
  const boxes = {};
  const edges = {};
  drawStates(table, boxes, edges);
  let connection = lab.Lifecycle();

  const add = (action, text) => {
    const button = make("button", { type: "button", "data-action": action }, text);
    button.onclick = () => show(action, text, JSON.parse(connection.do(action)));
    $("lifecycle-buttons").append(button);
  };
  INPUTS.forEach(([action, text]) => add(action, text));
  table.server.forEach((name) => add(name, `server: ${name}`));
  COMMANDS.forEach((name) => add(name, `${name}()`));
  TIMES.forEach((time) => add(time, `${time} s`));
  const again = make("button", { type: "button", id: "lifecycle-again" }, "start over");
  again.onclick = restart;
  $("lifecycle-buttons").append(again);

  function restart() {
    connection = lab.Lifecycle();
    $("lifecycle-log").replaceChildren();
    show("", "", JSON.parse(connection.do("")));
  }

  function show(action, text, result) {
    for (const [state, box] of Object.entries(boxes)) {
      box.classList.toggle("now", state === result.state);
    }
    const taken = result.steps.filter((step) => step.kind === "state").map((step) => step.text);
    for (const [name, edge] of Object.entries(edges)) {
      edge.classList.toggle("taken", taken.includes(name));
    }
    for (const button of document.querySelectorAll("[data-action]")) {
      const input = table.server.includes(button.dataset.action) ? "receive_data" : button.dataset.action;
      const isInput = INPUTS.some(([name]) => name === input) || input === "receive_data";
      button.classList.toggle("illegal", isInput && !result.legal.includes(input));
    }
    const lines = result.steps.map((step) => line(step.kind, step.text));
    if (result.error) {
      lines.push(line("error", result.error));
    }
    if (action) {
      $("lifecycle-log").prepend(line("input", `${result.now.toFixed(1)} s  ${text}`), ...lines);
    }
    const deadline = result.deadline === null ? "no deadline" : `next deadline in ${result.deadline.toFixed(1)} s`;
    const requests = result.requests.map((outcome, index) => `request ${index + 1}: ${outcome}`).join("; ");
    $("lifecycle-now").textContent =
      `${result.state} at ${result.now.toFixed(1)} s; ${deadline}; messages in the queue: ${result.mailbox}. ${requests}`;
  }

  restart();
}

function line(kind, text) {
  return make("li", { class: kind }, make("b", {}, kind), ` ${text}`);
}

// Where a line from the first point meets the border of the box around the second one.
function border(fromX, fromY, x, y) {
  const [dx, dy] = [fromX - x, fromY - y];
  const share = Math.min(WIDTH / 2 / Math.max(1, Math.abs(dx)), HEIGHT / 2 / Math.max(1, Math.abs(dy)), 1);
  return [x + dx * share, y + dy * share];
}

function drawStates(table, boxes, edges) {
  const svg = $("lifecycle-states");
  const arrow = draw("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    draw("path", { d: "M0 0L8 4L0 8z", fill: "context-stroke" }));
  svg.append(draw("defs", {}, arrow));
  const drawn = new Set();
  for (const [from, , to] of table.rows) {
    const name = `${from} -> ${to}`;
    if (from === to || drawn.has(name)) {
      continue;
    }
    drawn.add(name);
    const [x1, y1] = PLACES[from];
    const [x2, y2] = PLACES[to];
    // Two states with ways in both directions get two curves.
    const bend = 18;
    const length = Math.hypot(x2 - x1, y2 - y1);
    const [mx, my] = [(x1 + x2) / 2 - (bend * (y2 - y1)) / length, (y1 + y2) / 2 + (bend * (x2 - x1)) / length];
    const [ex, ey] = border(mx, my, x2, y2);
    const d = `M${x1} ${y1} Q${mx} ${my} ${ex} ${ey}`;
    edges[name] = draw("path", { class: "edge", d, "marker-end": "url(#arrow)" }, draw("title", {}, name));
    svg.append(edges[name]);
  }
  for (const state of table.states) {
    const [x, y] = PLACES[state];
    boxes[state] = draw("rect", {
      class: "box", x: x - WIDTH / 2, y: y - HEIGHT / 2, width: WIDTH, height: HEIGHT, rx: 7,
    });
    const label = draw("text", { x, y: y + 4, "text-anchor": "middle" });
    label.textContent = state;
    svg.append(boxes[state], label);
  }
}
