// nats.js in the scenarios of the Python scripts; _compare.py starts it.
//
//     node bench/nats.cjs SCRIPT SCENARIO URL WHAT...
//
// SCRIPT is the Python script that has the same scenarios (_core, _streams, _pull, _push, _kv,
// _scaling, _cold); the arguments, `ready`, `go` and the result are those of that script.
"use strict";

let connect, jetstream, Kvm;
try {
  ({ connect } = require("@nats-io/transport-node"));
  ({ jetstream } = require("@nats-io/jetstream"));
  ({ Kvm } = require("@nats-io/kv"));
} catch (error) {
  console.log("absent");
  process.exit(0);
}

const WARM_UP = 20; // one in so many messages goes ahead
const SUBJECT = "bench.orders.new";
const WINDOW = 1000;
const [script, scenario, url, ...what] = process.argv.slice(2);

function say(word) {
  process.stdout.write(word + "\n");
}

function clock() {
  const cpu = process.cpuUsage();
  const wall = process.hrtime.bigint();
  return (count) => {
    const used = process.cpuUsage(cpu);
    const seconds = Number(process.hrtime.bigint() - wall) / 1e9;
    return { rate: count / seconds, cpu: (used.user + used.system) / count };
  };
}

async function latency(call, count) {
  for (let n = 0; n < Math.max(20, Math.floor(count / WARM_UP)); n++) await call();
  const times = [];
  const stop = clock();
  for (let n = 0; n < count; n++) {
    const start = process.hrtime.bigint();
    await call();
    times.push(Number(process.hrtime.bigint() - start) / 1e3);
  }
  const result = stop(count);
  times.sort((a, b) => a - b);
  result.p50 = times[Math.floor(count / 2)];
  result.p99 = times[Math.floor((count * 99) / 100)];
  return result;
}

// The core: publish, subscribe, callback, request, memory.

async function publish(nc, data, count) {
  for (let n = 0; n < count; n++) {
    nc.publish(SUBJECT, data);
    // publish never waits, so a program that sends much gives the socket its turn.
    if (n % 1000 === 999 || data.length > 100000) await nc.flush();
  }
  await nc.flush();
}

async function receive(nc, count, take) {
  await nc.flush();
  say("ready");
  await take();
  const stop = clock();
  const taking = take();
  say("go");
  const got = await taking;
  const result = stop(count);
  result.lost = count - got;
  return result;
}

async function core(nc) {
  const count = Number(what[0]);
  const size = Number(what[1]);
  const data = new Uint8Array(size);
  if (scenario === "publish") {
    await publish(nc, data, Math.floor(count / WARM_UP));
    const stop = clock();
    await publish(nc, data, count);
    return stop(count);
  }
  if (scenario === "subscribe") {
    const iterator = nc.subscribe(SUBJECT)[Symbol.asyncIterator]();
    return receive(nc, count, async () => {
      let got = 0;
      for (;;) {
        const { value } = await iterator.next();
        if (!value.data.length) return got;
        got++;
      }
    });
  }
  if (scenario === "callback") {
    let got = 0;
    let end;
    nc.subscribe(SUBJECT, {
      callback: (_, msg) => {
        if (msg.data.length) got++;
        else {
          end(got);
          got = 0;
        }
      },
    });
    return receive(nc, count, () => new Promise((resolve) => (end = resolve)));
  }
  if (scenario === "request") {
    return latency(() => nc.request("bench.service", data, { timeout: 2000 }), count);
  }
  if (scenario === "memory") {
    global.gc?.();
    const before = process.memoryUsage.rss();
    for (let n = 0; n < count; n++) nc.subscribe(`bench.many.${n}`);
    await nc.flush();
    global.gc?.();
    return { connected: before / 1e6, more: (process.memoryUsage.rss() - before) / 1e6, count };
  }
  return null;
}

// Publishing to streams: sequential, window, load.

async function streams(nc) {
  const count = Number(what[0]);
  const data = new Uint8Array(Number(what[1]));
  const js = jetstream(nc);
  const send = () => js.publish("stream.orders.new", data);
  if (scenario === "sequential") return latency(send, count);
  const together = async (number) => {
    for (let n = 0; n < Math.floor(number / WINDOW); n++) {
      await Promise.all(Array.from({ length: WINDOW }, send));
    }
  };
  await together(2 * WINDOW);
  const stop = clock();
  await together(count);
  return stop(count);
}

// Pulling: fetch100, fetch500, consume, none, unread, headers.

const decoder = new TextDecoder();

function numberOf(msg) {
  return Number(decoder.decode(msg.data.subarray(0, 8)));
}

async function pull(nc) {
  const [stream, name, text, size] = what;
  const count = Number(text);
  const large = Number(size) >= 256 * 1024;
  const ahead = large ? 20 : 500;
  const consumer = await jetstream(nc).consumers.get(stream, name);
  const batch = scenario === "fetch100" ? 100 : scenario === "fetch500" ? 500 : 0;
  const messages = batch ? null : await consumer.consume({ max_messages: large ? 20 : 500 });
  const iterator = messages?.[Symbol.asyncIterator]();
  let last;
  const take = async (left) => {
    if (batch) {
      while (left > 0) {
        for await (const msg of await consumer.fetch({ max_messages: batch, expires: 5000 })) {
          last = msg;
          msg.ack();
          left--;
        }
      }
      return;
    }
    while (left > 0) {
      const { value } = await iterator.next();
      last = value;
      if (scenario === "headers" && !value.headers.get("Order-Id")) throw new Error("no header");
      if (scenario !== "none") value.ack();
      left--;
    }
  };
  await take(ahead);
  const stop = clock();
  await take(count);
  await nc.flush();
  const result = stop(count);
  result.lost = numberOf(last) + 1 - ahead - count;
  return result;
}

// Push consumers: iterator, callback.

async function push(nc) {
  const [text, ahead, name] = what;
  const count = Number(text);
  const js = jetstream(nc);
  const take = async (stream, left) => {
    const consumer = await js.consumers.getPushConsumer(stream, name);
    let last;
    if (scenario === "callback") {
      let end;
      const done = new Promise((resolve) => (end = resolve));
      const messages = await consumer.consume({
        callback: (msg) => {
          last = msg;
          msg.ack();
          if (!--left) end();
        },
      });
      await done;
      messages.stop();
      return last;
    }
    for await (const msg of await consumer.consume()) {
      last = msg;
      msg.ack();
      if (!--left) break;
    }
    return last;
  };
  await take("WARM", Number(ahead));
  const stop = clock();
  const last = await take("PUSH", count);
  await nc.flush();
  const result = stop(count);
  result.lost = numberOf(last) + 1 - count;
  return result;
}

// A bucket: get, put, watch, keys.

async function kv(nc) {
  const count = Number(what[0]);
  const data = new Uint8Array(Number(what[1]));
  const keys = 10000;
  const bucket = await new Kvm(nc).open("bench");
  if (scenario === "get") return latency(() => bucket.get("orders.7"), count);
  if (scenario === "put") return latency(() => bucket.put("orders.8", data), count);
  const once = async () => {
    let found = 0;
    if (scenario === "keys") {
      for await (const _ of await bucket.keys()) found++;
      return found;
    }
    const watch = await bucket.watch();
    for await (const _ of watch) {
      found++;
      if (found === keys) break;
    }
    return found;
  };
  await once();
  const stop = clock();
  let found = 0;
  for (let n = 0; n < count; n++) found += await once();
  const result = stop(count * keys);
  result.lost = count * keys - found;
  return result;
}

// Many subscriptions or consumers: tasks, consumers.

async function scaling(nc) {
  const count = Number(what[0]);
  const number = Number(what[1]);
  let left = 0;
  let end;
  const expect = (messages) => {
    left = messages;
    return new Promise((resolve) => (end = resolve));
  };
  const add = () => {
    if (!--left) end();
  };
  if (scenario === "tasks") {
    const drain = async (subscription) => {
      for await (const _ of subscription) add();
    };
    for (let n = 0; n < number; n++) drain(nc.subscribe(`bench.many.${n}`));
    await nc.flush();
    const ahead = expect(Math.max(1, Math.floor(Math.floor(count / WARM_UP) / number)) * number);
    say("ready");
    await ahead;
    const all = expect(count);
    const stop = clock();
    say("go");
    await all;
    return stop(count);
  }
  const js = jetstream(nc);
  const bound = [];
  for (let n = 0; n < number; n++) bound.push(await js.consumers.get("MANY", `c${n}`));
  const all = expect(count);
  const stop = clock();
  for (const consumer of bound) {
    (async () => {
      let mine = count / number;
      for await (const msg of await consumer.consume({ max_messages: 100 })) {
        msg.ack();
        add();
        if (!--mine) break;
      }
    })();
  }
  await all;
  await nc.flush();
  return stop(count);
}

// From the start of the process to the first acknowledgment.

async function cold(nc) {
  await jetstream(nc).publish("cold.orders", new Uint8Array(16));
  const used = process.cpuUsage();
  return { cpu: used.user + used.system };
}

async function main() {
  const nc = await connect({ servers: url });
  const scenarios = { _core: core, _streams: streams, _pull: pull, _push: push, _kv: kv };
  const all = { ...scenarios, _scaling: scaling, _cold: cold };
  const result = await all[script](nc);
  say(result ? JSON.stringify(result) : "absent");
  process.exit(0);
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
