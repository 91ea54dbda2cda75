import { deliver } from "../../../core/outbox/deliver.ts";
import { openDatabase } from "../../../drizzle/client.ts";
import { systemClock } from "../../../platform/clock.ts";
import { fakeConversation } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { conversations } from "./load.ts";

// Enqueues a few messages a second, and prints the text of each once it is in the database. A message that could not be
// enqueued is retried under the same key, as in a task that runs again. It is a separate process, so that cut connections
// do not affect the test's process.

const [incidentId = "", name = "", first = ""] = process.argv.slice(2);
const pauseMilliseconds = 250;

const { db } = openDatabase(process.env.SVC_DATABASE_URL ?? "", 1);
const context = {
  clock: systemClock,
  plugins: pluginsOf(...conversations.map((slug) => fakeConversation({}, { slug }))),
};
for (let n = Number(first); ; n++) {
  const text = `${name}, message ${n}`;
  const one = { key: { task: "load", what: text, whom: "all" }, incidentId: Number(incidentId) };
  const enqueue = () =>
    db.transaction((tx) => deliver(tx, context, [{ ...one, message: { subject: text, text: "" } }]));
  while (!(await enqueue().catch(() => undefined))) await Bun.sleep(pauseMilliseconds);
  process.stdout.write(`${text}\n`);
  await Bun.sleep(pauseMilliseconds);
}
