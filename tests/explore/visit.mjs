// Visits the explorer in Chromium: uses every pane, and prints what it shows as JSON.
//
//     node visit.mjs <node_modules> <chromium> <url of the page> <url of a WebSocket> <folder for pictures> [blocked]
//
// The browser cannot load files whose names begin with `blocked`.

import path from "node:path";
import { pathToFileURL } from "node:url";

const [modules, executablePath, url, websocket, pictures, blocked] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(path.join(modules, "playwright-core/index.mjs")));

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
const errors = [];
page.on("pageerror", (error) => errors.push(String(error)));
page.on("requestfailed", (request) => errors.push(request.url()));
if (blocked) {
  await page.route(`**/${blocked}*`, (route) => route.abort());
}
page.setDefaultTimeout(60_000);
const text = (selector) => page.textContent(selector);
const seen = { errors };

async function visitWire() {
  seen.example = await text("#wire-state");
  await page.selectOption("#wire-dialogue", { label: "17-pull-heartbeat-100" });
  seen.dialogue = await text("#wire-title-of");
  seen.frames = await page.locator("#wire-frames tr").count();
  seen.whole = await page.locator("#wire-frames td:nth-child(3)").allTextContents();
  await page.fill("#wire-piece", "3");
  seen.pieces = await page.locator("#wire-frames td:nth-child(3)").allTextContents();
  await page.fill("#wire-bytes", "PING\nNOPE\n");
  seen.error = await text("#wire-state");
}

async function visitLifecycle() {
  for (const action of ["connect", "transport_opened", "INFO", "PONG", "subscribe", "MSG"]) {
    await page.click(`[data-action="${action}"]`);
  }
  seen.connected = await text("#lifecycle-now");
  seen.edge = await page.locator("#lifecycle-states .now").count();
  await page.click('[data-action="tls_started"]');
  seen.refused = await text("#lifecycle-log li.error");
  seen.dashed = await page.getAttribute('[data-action="tls_started"]', "class");
}

async function visitConsumers() {
  seen.quiet = await text("#consumers-summary");
  await page.check('[data-fault="cut"]');
  seen.cut = await text("#consumers-summary");
  seen.faults = await page.locator("#consumers-time .mark.fault").count();
  await page.focus("#consumers-time");
  const before = await text("#consumers-step");
  await page.keyboard.press("ArrowRight");
  seen.moved = before !== await text("#consumers-step");
  await page.hover("#consumers-time .mark.pull >> nth=1");
  seen.step = await text("#consumers-step");
  await page.click("#consumers-step button");
  seen.source = await text("#source-text mark");
  await page.keyboard.press("Escape");
  await page.locator("#consumers").screenshot({ path: path.join(pictures, "consumers.png") });
  seen.readers = {};
  for (const reader of ["fetch", "ordered", "push"]) {
    await page.selectOption("#consumers-reader", reader);
    seen.readers[reader] = await text("#consumers-summary");
  }
  await page.selectOption("#consumers-reader", "consume");
}

async function visitLive() {
  await page.fill("#live-url", "nats://127.0.0.1");
  await page.click("#live-form button");
  seen.scheme = await text("#live-log li.error");
  await page.fill("#live-url", websocket);
  await page.click("#live-form button");
  await page.waitForSelector('#live-state:has-text("open pull")');
  await page.click("#live-publish button");
  await page.waitForSelector("#live-log li.message");
  await page.click("#live-cut");
  await page.waitForSelector('#live-log li:has-text("Disconnected")');
  await page.click("#live-publish button"); // held until the connection is back
  await page.waitForSelector('#live-log li.message:has-text("explorer.2")');
  seen.log = await page.locator("#live-log li").allTextContents();
}

try {
  await page.goto(url);
  await page.waitForSelector("body[data-ready]");
  seen.ready = await text("#ready");
  for (const visit of [visitWire, visitLifecycle, visitConsumers, visitLive]) {
    await visit();
  }
  await page.screenshot({ path: path.join(pictures, "explorer.png"), fullPage: true });
  await page.click("#live-close");
  await page.waitForSelector('#live-state:has-text("CLOSED")');
  await page.setViewportSize({ width: 390, height: 800 });
  seen.overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
  await page.screenshot({ path: path.join(pictures, "explorer-phone.png"), fullPage: true });
  console.log(JSON.stringify(seen));
} catch (error) {
  console.error(String(error), errors);
  process.exitCode = 1;
} finally {
  await browser.close();
}
