// A service and a client of nats.js, for tests/peers/test_nats_js.py. Arguments: the directory of
// the packages, the URL, the mode. Prints one line of JSON for each thing that happens.

import { createRequire } from "node:module";

const [home, url, mode, name] = process.argv.slice(2);
const require = createRequire(home + "/");
const { connect } = require("@nats-io/transport-node");
const { Svcm, ServiceError } = require("@nats-io/services");

const tell = (value) => console.log(JSON.stringify(value));
const collect = async (found) => {
  const all = [];
  for await (const each of await found) all.push(each);
  return all;
};

const nc = await connect({ servers: url });
const svc = new Svcm(nc);

if (mode === "serve") {
  const service = await svc.add({
    name,
    version: "1.2.3",
    description: "A service of nats.js",
    metadata: { runtime: "node" },
    statsHandler: async () => ({ extra: 1 }),
  });
  const group = service.addGroup("js");
  group.addEndpoint("echo", {
    metadata: { a: "b" },
    handler: (error, msg) => msg.respond(msg.data, { headers: msg.headers }),
  });
  group.addEndpoint("fail", (error, msg) => msg.respondError(404, "not found", "details"));
  tell({ id: service.info().id });
  process.stdin.on("end", async () => {
    await service.stop();
    await nc.close();
  });
  process.stdin.resume();
} else {
  const client = svc.client({ strategy: "stall", maxWait: 2000, stall: 300 });
  tell({ ping: await collect(client.ping(name)) });
  tell({ info: await collect(client.info(name)) });
  const [{ id }] = await collect(client.ping(name));
  tell({ one: await collect(client.ping(name, id)) });
  const echo = await nc.request(`${name}.echo`, "hello", { timeout: 2000 });
  tell({ echo: echo.string() });
  const fail = await nc.request(`${name}.fail`, "", { timeout: 2000 });
  tell({ isError: ServiceError.isServiceError(fail), error: ServiceError.toServiceError(fail) });
  tell({ stats: await collect(client.stats(name)) });
  await nc.close();
}
