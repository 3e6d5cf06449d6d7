// Runs a Python program on Pyodide, under Node.
//
//     node run.mjs <pyodide.mjs> <root> <module> <arguments, as JSON>
//
// The root is the repository; Pyodide sees it as /repo. `main(*arguments)` of the module is awaited,
// and an exception ends with status 1. The function `ask` sends a request to the test, as a line of
// JSON, and waits for the response: file descriptors 3 and 4 are pipes.

import fs from "node:fs";
import { pathToFileURL } from "node:url";

const [home, root, module, given] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(home));
const pyodide = await loadPyodide({ env: { HOME: "/home/pyodide", PYTHONDONTWRITEBYTECODE: "1" } });
pyodide.mountNodeFS("/repo", root);

let received = "";
function ask(request) {
  fs.writeSync(3, request + "\n");
  const buffer = Buffer.alloc(65536);
  while (!received.includes("\n")) {
    received += buffer.toString("utf8", 0, fs.readSync(4, buffer));
  }
  const end = received.indexOf("\n");
  const response = received.slice(0, end);
  received = received.slice(end + 1);
  return response;
}
pyodide.registerJsModule("test_process", { ask });

try {
  await pyodide.runPythonAsync(`
import json, sys
from importlib import import_module
sys.path.insert(0, "/repo")
await import_module(${JSON.stringify(module)}).main(*json.loads(${JSON.stringify(given)}))
`);
} catch (error) {
  // Node would print the line that threw, which is all of Pyodide.
  console.error(String(error));
  process.exitCode = 1;
}
process.exit();
