// Traffic of nats.js, for tests/cli/test_trace.py. Arguments: the directory of the packages, the port.

import { createRequire } from "node:module";

const [home, port] = process.argv.slice(2);
const require = createRequire(home + "/");
const { connect, headers } = require("@nats-io/transport-node");

const nc = await connect({ servers: `127.0.0.1:${port}`, ignoreClusterUpdates: true });
const sub = nc.subscribe("js.>", {
  callback: (error, msg) => msg.reply && msg.respond(msg.data),
});
const fields = headers();
fields.set("A", "1");
nc.publish("js.a", "hello", { headers: fields });
const reply = await nc.request("js.b", "x".repeat(100000), { timeout: 20000 });
if (reply.data.length !== 100000) process.exit(1);
const info = await nc.request("$JS.API.INFO", "", { timeout: 20000 });
if (!JSON.parse(info.string()).limits) process.exit(1);
sub.unsubscribe();
await nc.drain();
