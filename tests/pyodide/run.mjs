// Runs a Python program on Pyodide, under Node.
//
//     node run.mjs <pyodide.mjs> <root> <requests> <responses> <module> <arguments>
//
// The root is the repository, which Pyodide sees as /repo. `main(*arguments)` of the module is
// awaited, with arguments that are a list in JSON, and what it returns is printed as JSON. An
// exception ends with status 1. `ask` of the module `test_process` sends a line to the test and waits
// for the answer, over pipes with these numbers.

import fs from "node:fs";
import { pathToFileURL } from "node:url";

const [home, root, requests, responses, module, given] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(home));
const pyodide = await loadPyodide({ env: { HOME: "/home/pyodide", PYTHONDONTWRITEBYTECODE: "1" } });
pyodide.mountNodeFS("/repo", root);

let received = "";
function ask(request) {
  fs.writeSync(Number(requests), request + "\n");
  const buffer = Buffer.alloc(65536);
  while (!received.includes("\n")) {
    received += buffer.toString("latin1", 0, fs.readSync(Number(responses), buffer));
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
print(json.dumps(await import_module(${JSON.stringify(module)}).main(*json.loads(${JSON.stringify(given)}))))
`);
} catch (error) {
  // Node would print the line that threw, which is all of Pyodide.
  console.error(String(error));
  process.exitCode = 1;
}
process.exit();
