// Loads Python and the sources, and gives Python the WebSocket of the page.
//
// Python is MicroPython. If that cannot be loaded, it is Pyodide, if the page has it: it is 25 times
// as large, and takes seconds to start.

import { addHost } from "./host.mjs";

const HEAP = 16 * 1024 * 1024; // garbage is collected between calls only
const LABS = "jetstream.tools.explore.labs";
const FUTURE = "__future__.py"; // for MicroPython, which has no such module

export async function loadPython() {
  const sources = await (await fetch("core.json")).json();
  const { name, python } = await loadRuntime();
  const made = new Set();
  for (const [path, text] of Object.entries(sources)) {
    if (path !== FUTURE || name === "MicroPython") {
      makeFolders(python, path, made);
      python.FS.writeFile(`/${path}`, text);
    }
  }
  addHost(python);
  python.runPython("import sys\nif '/' not in sys.path: sys.path.insert(0, '/')");
  const lab = (pane) => {
    python.runPython(`from ${LABS} import ${pane} as ${pane}_lab`);
    return python.globals.get(`${pane}_lab`);
  };
  return { name, python, sources, lab };
}

async function loadRuntime() {
  try {
    const { loadMicroPython } = await import("./micropython.mjs");
    return { name: "MicroPython", python: await loadMicroPython({ heapsize: HEAP }) };
  } catch (error) {
    return { name: "Pyodide", python: await loadFallback(error) };
  }
}

async function loadFallback(reason) {
  let runtime;
  try {
    runtime = await import("./pyodide/pyodide.mjs");
  } catch {
    throw new Error(`MicroPython could not be loaded (${reason}), and there is no Pyodide: see explore --fallback`);
  }
  return runtime.loadPyodide({ indexURL: new URL("pyodide/", document.baseURI).href });
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
