// Runs coroutines on MicroPython, with the WebSocket of Node.
//
//     node --experimental-websocket live.mjs <micropython.mjs> <directory> <statement>
//
// The directory is copied to the root of MicroPython's file system. The statement may await.
// Everything that Python prints is written at once, and lines on stdin are for `host_line`.

import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

import { addHost } from "../../jetstream/tools/explore/page/host.mjs";

const [module, directory, statement] = process.argv.slice(2);
const { loadMicroPython } = await import(pathToFileURL(module));
// Garbage is collected between two turns of the event loop only, so there has to be some room.
const micropython = await loadMicroPython({
  heapsize: 4 * 1024 * 1024,
  stdout: (line) => fs.writeSync(1, `${line}\n`),
  stderr: (line) => fs.writeSync(2, `${line}\n`),
});

function copy(from, to) {
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const source = path.join(from, entry.name);
    const target = `${to}/${entry.name}`;
    if (entry.isDirectory()) {
      micropython.FS.mkdir(target);
      copy(source, target);
    } else {
      micropython.FS.writeFile(target, fs.readFileSync(source));
    }
  }
}

addHost(micropython);

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
globalThis.host_line = async () => (await lines.next()).value;

copy(directory, "");
try {
  await micropython.runPythonAsync(statement);
} catch (error) {
  // Node would print the line that threw, which is all of MicroPython.
  console.error(String(error));
  process.exitCode = 1;
}
process.exit();
