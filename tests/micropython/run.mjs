// Runs Python statements on MicroPython.
//
//     node run.mjs <micropython.mjs> <directory> <statement>...
//
// The directory is copied to the root of MicroPython's file system. Each statement is a call of its
// own, because MicroPython collects garbage only between calls. An exception ends with status 1.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [module, directory, ...statements] = process.argv.slice(2);
const { loadMicroPython } = await import(pathToFileURL(module));

const micropython = await loadMicroPython({
  stdout: (line) => console.log(line),
  stderr: (line) => console.error(line),
});

function copy(from, to) {
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const source = path.join(from, entry.name);
    const target = `${to}/${entry.name}`;
    if (entry.isDirectory()) {
      micropython.FS.mkdir(target);
      copy(source, target);
    } else {
      // As a file: bytes handed over as values cross the border one by one.
      micropython.FS.writeFile(target, fs.readFileSync(source));
    }
  }
}

copy(directory, "");
try {
  for (const statement of statements) {
    micropython.runPython(statement);
  }
} catch (error) {
  // Node would print the line that threw, which is all of MicroPython.
  console.error(String(error));
  process.exitCode = 1;
}
