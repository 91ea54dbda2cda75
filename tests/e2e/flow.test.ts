import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { type DatabaseClient, openDatabase } from "../../drizzle/client.ts";
import { conversation, flowStep } from "../../drizzle/schema/index.ts";
import { freePort } from "../../platform/free_port.ts";
import { insertIncident } from "../support/domain/incident.ts";
import { listening, Stack } from "../support/process/stack.ts";
import { until } from "../support/process/until.ts";

/** If a server stops before it has run the steps of an incident, the next one runs them. */

setDefaultTimeout(60_000);

let stack: Stack;
let client: DatabaseClient;
beforeAll(async () => {
  stack = await Stack.start();
  // Its servers do not have this plugin, and would log that.
  for (const server of [stack.a, stack.b]) {
    server.kill("SIGTERM");
    await server.exit(15);
  }
  client = openDatabase(stack.databaseUrl, 2);
});
afterAll(async () => {
  await client?.close();
  await stack?.[Symbol.asyncDispose]();
});

test("a stopping server gives back its step quickly; the next start continues with the same key", async () => {
  const received: { type: string; id: string | null }[] = [];
  let answer: () => Response | Promise<Response> = () => new Promise(() => {});
  await using receiver = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const { type } = (await request.json()) as { type: string };
      received.push({ type, id: request.headers.get("webhook-id") });
      return answer();
    },
  });
  const settings = {
    ...stack.serverSettings(),
    SVC_PLUGIN_CONVERSATION: "webhook",
    SVC_PLUGIN_WEBHOOK_URL: receiver.url.href,
    SVC_PLUGIN_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString("base64")}`,
  };
  const start = async () => {
    const args = ["server", "start", "server/main:app", "--port", String(await freePort())];
    const server = stack.run(args, settings);
    await listening(server);
    return server;
  };
  const { db } = client;
  const at = new Date();
  const { incidentId } = await insertIncident(db, at);
  const step = "reported:conversation:webhook";
  const isStep = and(eq(flowStep.incidentId, incidentId), eq(flowStep.step, step));
  const row = async () => (await db.select().from(flowStep).where(isStep))[0];
  await db.insert(flowStep).values({ incidentId, step, dueAt: at });
  await using first = await start();
  await until("the plugin to be called", () => received.length > 0);
  first.kill("SIGTERM");
  expect(await first.exit(15)).toBe(0);
  expect(await row()).toMatchObject({ state: "Pending", attempts: 0, leaseUntil: null });
  answer = () => Response.json({ externalId: "room" });
  await using _second = await start();
  await until("the step to be done", async () => (await row())?.state === "Done");
  expect(received.map(({ type }) => type)).toEqual([
    "conversation.create",
    "conversation.create",
    "conversation.add",
    "conversation.send",
  ]);
  expect(received[1]!.id).toBe(received[0]!.id);
  const made = and(eq(conversation.incidentId, incidentId), eq(conversation.pluginSlug, "webhook"));
  expect(await db.select().from(conversation).where(made)).toMatchObject([{ externalId: "room" }]);
});
