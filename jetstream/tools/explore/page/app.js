// Loads everything, then starts the panes.

import { startConsumers } from "./consumers.js";
import { $, Rules } from "./dom.js";
import { startLifecycle } from "./lifecycle.js";
import { startLive } from "./live.js";
import { loadPython } from "./python.js";
import { startWire } from "./wire.js";

const READERS = ["consume", "fetch", "ordered", "push"];

async function start() {
  const began = performance.now();
  const [{ name, python, sources, lab }, texts, dialogues] = await Promise.all([
    loadPython(),
    fetch("rules.json").then((response) => response.json()),
    fetch("dialogues.json").then((response) => response.json()),
  ]);
  const rules = new Rules(texts, sources);
  startWire(lab("wire"), rules, dialogues);
  startLifecycle(lab("lifecycle"));
  startConsumers(lab("consumers"), rules, READERS);
  startLive(python, lab("live"));
  $("ready").textContent = `${name} and the library were loaded in ${((performance.now() - began) / 1000).toFixed(1)} s.`;
  document.body.dataset.ready = "true";
}

start().catch((error) => {
  $("ready").textContent = `The page could not be started: ${error}`;
  $("ready").className = "bad";
  throw error;
});
