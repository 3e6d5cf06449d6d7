// Loads MicroPython and the sources, and gives Python the WebSocket of the page.

import { loadMicroPython } from "./micropython.mjs";

const HEAP = 16 * 1024 * 1024; // garbage is collected between calls only
const LABS = "jetstream.tools.explore.labs";

export async function loadPython() {
  const sources = await (await fetch("core.json")).json();
  const python = await loadMicroPython({ heapsize: HEAP });
  const made = new Set();
  for (const [path, text] of Object.entries(sources)) {
    makeFolders(python, path, made);
    python.FS.writeFile(`/${path}`, text);
  }
  addHost(python);
  const lab = (name) => {
    python.runPython(`from ${LABS} import ${name} as ${name}_lab`);
    return python.globals.get(`${name}_lab`);
  };
  return { python, sources, lab };
}

function makeFolders(python, path, made) {
  const parts = path.split("/").slice(0, -1);
  for (let count = 1; count <= parts.length; count += 1) {
    const folder = `/${parts.slice(0, count).join("/")}`;
    if (!made.has(folder)) {
      python.FS.mkdir(folder);
      made.add(folder);
    }
  }
}

// The functions that labs/live.py calls. Data crosses the border as files.
function addHost(python) {
  const sockets = new Map();
  globalThis.host_open = (url, opened, received, closed) => {
    const id = sockets.size + 1;
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => opened();
    socket.onclose = () => closed();
    socket.onmessage = (event) => {
      const file = `/in${id}`;
      python.FS.writeFile(file, new Uint8Array(event.data));
      received(file);
    };
    sockets.set(id, socket);
    return id;
  };
  globalThis.host_send = (id, file) => {
    const socket = sockets.get(id);
    if (socket.readyState === WebSocket.OPEN) {
      socket.send(python.FS.readFile(file));
    }
  };
  globalThis.host_close = (id) => sockets.get(id).close();
  globalThis.host_random = (size) =>
    Array.from(crypto.getRandomValues(new Uint8Array(size)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
