// Pane 4: a client of a real server.

import { $, make } from "./dom.js";

const MOST_LINES = 300;
const EVERY = 500; // milliseconds between two looks at the consumer

export function startLive(python, lab) {
  let state = "not connected";
  globalThis.host_report = (text) => {
    const row = JSON.parse(text);
    if (row.kind === "state") {
      state = row.text;
      show();
      return;
    }
    const log = $("live-log");
    log.prepend(make("li", { class: row.kind }, make("b", {}, row.kind), ` ${row.text}`));
    while (log.children.length > MOST_LINES) {
      log.lastChild.remove();
    }
  };
  const call = (name, argument = "") =>
    python.runPythonAsync(`await live_lab.live.${name}(${argument && JSON.stringify(argument)})`);

  $("live-form").onsubmit = (event) => {
    event.preventDefault();
    call("connect", $("live-url").value);
  };
  $("live-publish").onsubmit = (event) => {
    event.preventDefault();
    call("publish", $("live-text").value);
  };
  $("live-cut").onclick = () => lab.live.cut();
  $("live-close").onclick = () => call("close");
  setInterval(show, EVERY);

  function show() {
    const reason = lab.live.snapshot();
    $("live-state").textContent = reason ? `${state}; the consumer: ${reason}` : state;
  }
}
