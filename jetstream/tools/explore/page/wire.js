// Pane 1: bytes, and the frames in them.

import { $, make } from "./dom.js";

const EXAMPLE = `INFO {"server_id":"S","version":"2.15.1","headers":true,"max_payload":1048576}
PING
MSG greet.ada 1 5
hello
HMSG _INBOX.7 2 32 32
NATS/1.0 408 Request Timeout


MSG orders.new 3 $JS.ACK.ORDERS.worker.1.7.7.1794786870000000000.0 10
one coffee
`;
const PLACES = { "": "between two frames", line: "in a control line", payload: "in a payload" };

export function startWire(lab, rules, dialogues) {
  const select = $("wire-dialogue");
  dialogues.forEach((dialogue, index) => select.append(make("option", { value: index }, dialogue.name)));

  function load() {
    const dialogue = dialogues[select.value];
    const side = $("wire-peer").value;
    $("wire-title-of").textContent = dialogue ? dialogue.title : "";
    if (dialogue) {
      $("wire-bytes").value = dialogue[side];
    } else {
      $("wire-bytes").value = side === "server" ? EXAMPLE : 'CONNECT {"verbose":false}\nPING\nSUB greet.* 1\nPUB greet.ada 5\nhello\n';
    }
    parse();
  }

  function parse() {
    const piece = Number($("wire-piece").value);
    $("wire-size").textContent = piece ? `${piece} byte${piece > 1 ? "s" : ""}` : "all at once";
    const found = JSON.parse(lab.parse($("wire-bytes").value, $("wire-peer").value, piece));
    $("wire-frames").replaceChildren(...found.frames.map((frame) => {
      const text = make("td", {}, frame.text, make("br"));
      text.append(rules.show(frame.rule));
      return make("tr", {}, make("td", {}, `${frame.start}–${frame.end}`), make("td", {}, `byte ${frame.fed}`),
        make("td", {}, make("pre", {}, frame.wire)), text);
    }));
    const state = $("wire-state");
    state.className = found.error ? "bad" : "";
    state.textContent = found.error
      ? `ProtocolError: ${found.error.text}`
      : `${found.size} bytes, ${found.frames.length} frames; the parser is ${PLACES[found.inside]}.`;
  }

  select.onchange = load;
  $("wire-peer").onchange = load;
  $("wire-piece").oninput = parse;
  $("wire-bytes").oninput = parse;
  load();
}
