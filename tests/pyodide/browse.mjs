// Opens a page in Chromium and does one thing with it.
//
//     node browse.mjs <node_modules> <chromium> <url> run <module> <arguments>
//     node browse.mjs <node_modules> <chromium> <url> chat
//
// "run" awaits window.run(module, arguments) and prints the result. "chat" reads commands from its
// standard input, a line each: `send <text>` types and sends a message, `wait <text>` waits until the
// page shows it, and `state <text>` waits for the state of the client. Each is answered by "done".

import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const [modules, executablePath, url, action, ...rest] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(path.join(modules, "playwright-core/index.mjs")));

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update"],
});
const page = await browser.newPage({ ignoreHTTPSErrors: true });
page.on("console", (message) => console.error(message.text()));
page.on("pageerror", (error) => console.error(String(error)));
page.setDefaultTimeout(60_000);

const ACTIONS = {
  async run(module, given) {
    await page.waitForFunction("window.run");
    console.log(await page.evaluate(([name, text]) => window.run(name, text), [module, given]));
  },
  async chat() {
    for await (const line of readline.createInterface({ input: process.stdin })) {
      const [command, ...words] = line.split(" ");
      const text = words.join(" ");
      if (command === "send") {
        await page.fill("#text", text);
        await page.click("button");
      } else {
        await page.waitForSelector(`${command === "wait" ? "li" : "#status"}:text-is("${text}")`);
      }
      console.log("done");
    }
  },
};

try {
  await page.goto(url);
  await ACTIONS[action](...rest);
} catch (error) {
  console.error(String(error));
  process.exitCode = 1;
} finally {
  await browser.close();
}
