import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { readConfig } from "../core/config.ts";
import { attemptDelivery } from "../core/incident/delivery/attempt.ts";
import { resendDelivery } from "../core/outbox/resend.ts";
import type { Plugins } from "../core/plugin/choose.ts";
import { openPlugins } from "../core/plugin/open.ts";
import { delivery, individual, participant } from "../drizzle/schema/index.ts";
import { builtinPlugins } from "../plugins/builtin.ts";
import { pluginsOf } from "../plugins/fake/plugins.ts";
import {
  addParticipant,
  at,
  claimAll,
  insertSecond,
  type Outbox,
  startOutbox,
} from "../tests/support/domain/delivery.ts";
import { noPlugins } from "../tests/support/domain/plugins.ts";
import { until } from "../tests/support/process/until.ts";
import { startMailServer, type TestMailServer } from "../tests/support/smtp.ts";
import { sendDeliveries } from "./deliveries.ts";
import { DatabaseTime } from "./time.ts";

// A message to everyone by mail, from workers to a real mail server.

const people = 30;
/** Tells the mail server not to answer at all. */
const hang = 0;
const addressOf = (n: number) => `person-${n}@example.com`;

let outbox: Outbox;
let server: TestMailServer;
/** An incident with a mail conversation and thirty participants. */
let incidentId: number;
let individuals: number[];
/** The server's response code for a recipient's n-th attempt. */
let answer: (address: string, time: number) => number | undefined;
let times: Map<string, number>;
let stop = new AbortController();
let working: Promise<void>[] = [];

beforeAll(async () => {
  outbox = await startOutbox(12);
  incidentId = await insertSecond(outbox, {}, ["mail"]);
  const values = Array.from({ length: people }, (_, n) => ({
    name: `Person ${n}`,
    email: addressOf(n),
    createdAt: at,
    updatedAt: at,
  }));
  const rows = await outbox.db.insert(individual).values(values).returning({ id: individual.id });
  individuals = rows.map(({ id }) => id);
  for (const id of individuals) await addParticipant(outbox, incidentId, id);
  server = await startMailServer({
    onRcptTo: ({ address }, _session, done) => {
      const time = (times.get(address) ?? 0) + 1;
      times.set(address, time);
      const responseCode = answer(address, time);
      if (responseCode === hang) return;
      done(responseCode ? Object.assign(new Error(`no ${address}`), { responseCode }) : undefined);
    },
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await outbox[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await outbox.empty();
  server.received.length = 0;
  answer = () => undefined;
  times = new Map();
  working = [];
});
afterEach(() => stopWorkers());

/** As in a worker's process: plugins share no memory with those of other workers. */
async function mailPlugins(): Promise<Plugins> {
  const { db, clock, config, log } = outbox.context(pluginsOf());
  const environment = {
    ...noPlugins,
    SVC_PLUGIN_CONVERSATION: "mail",
    SVC_PLUGIN_MAIL_FROM: "svc@example.com",
    SVC_PLUGIN_MAIL_URL: `smtp://127.0.0.1:${server.port}`,
  };
  const context = { db, clock, config, log };
  const { plugins } = await openPlugins({
    config: readConfig(environment),
    environment,
    builtin: builtinPlugins,
    directory: import.meta.dir,
    deps: { fetch: (url, init) => fetch(url, init), clock, log, context },
  });
  return plugins;
}

async function startWorker(grace?: number): Promise<void> {
  const { db, config, log, plugins } = outbox.context(await mailPlugins());
  const time = new DatabaseTime();
  time.observe(new Date(), performance.now(), performance.now());
  const deps = { db: () => db, time, config, log, plugins };
  working.push(sendDeliveries(deps, stop.signal, { poll: 0.5, grace }));
}

async function stopWorkers(): Promise<void> {
  stop.abort();
  await Promise.all(working);
  stop = new AbortController();
}

async function enqueue(): Promise<void> {
  const key = { task: "t", what: "w", whom: "conversation" };
  const message = { subject: "INC-2: a status report is due", text: "How does it stand?" };
  await outbox.deliver(await mailPlugins(), { key, incidentId, message });
}

/** Waits until no delivery is queued, making each attempt due at once instead of after its pause. */
const ended = () =>
  until("every delivery to end", async () => {
    await outbox.db.execute(
      sql`update delivery set due_at = now() where state = 'Queued' and lease_until is null and due_at > now()`,
    );
    return (await outbox.db.$count(delivery, eq(delivery.state, "Queued"))) === 0;
  });
const counts = async () =>
  Object.fromEntries(
    [...Map.groupBy(await outbox.all(), ({ state }) => state)].map(([state, rows]) => [state, rows.length]),
  );
const received = () => server.received.flatMap(({ to }) => to).sort();
const everybody = Array.from({ length: people }, (_, n) => addressOf(n)).sort();

test("deferred recipients each get the mail once, whichever worker retries", async () => {
  answer = (address) => (/0@/.test(address) ? 451 : undefined);
  await startWorker();
  await startWorker();
  await enqueue();
  const later = everybody.filter((address) => /0@/.test(address));
  await until(
    "each to be tried",
    () => server.received.length === people - later.length && later.every((address) => times.has(address)),
  );
  await stopWorkers();
  answer = (address, time) => (/0@/.test(address) && time <= 4 ? 451 : undefined);
  await startWorker();
  await startWorker();
  await ended();
  expect(received()).toEqual(everybody);
  expect(await counts()).toEqual({ Split: 1, Done: people });
  expect(Math.min(...later.map((address) => times.get(address) ?? 0))).toBeGreaterThanOrEqual(5);
});

test("a permanently refused recipient is Dead, the others get the mail, and a resend reaches only that one", async () => {
  answer = (address) => (address === addressOf(7) ? 550 : undefined);
  await startWorker();
  await enqueue();
  await ended();
  expect(received()).toEqual(everybody.filter((address) => address !== addressOf(7)));
  expect(await counts()).toEqual({ Split: 1, Done: people - 1, Dead: 1 });
  const [dead] = (await outbox.all()).filter(({ state }) => state === "Dead");
  expect(dead).toMatchObject({
    key: `t/w/conversation/mail/individual-${individuals[7]}`,
    recipient: `individual-${individuals[7]}`,
    error: "mail failed: the mail was not sent (550)",
  });
  expect(outbox.logged.join("")).toContain(dead!.key);
  expect(outbox.logged.join("")).not.toContain(addressOf(7));
  answer = () => undefined;
  await resendDelivery(outbox, dead!.key);
  await ended();
  expect(received()).toEqual(everybody);
});

test("a participant who leaves before the mail is sent gets none", async () => {
  await enqueue();
  const context = outbox.context(await mailPlugins());
  expect(await attemptDelivery(context, (await claimAll(context))[0]!)).toBe("split");
  const where = eq(participant.individualId, individuals[3]!);
  await outbox.db.update(participant).set({ leftAt: at }).where(where);
  await startWorker();
  await ended();
  await outbox.db.update(participant).set({ leftAt: null }).where(where);
  expect(received()).toEqual(everybody.filter((address) => address !== addressOf(3)));
  const [dead] = (await outbox.all()).filter(({ state }) => state === "Dead");
  expect(dead?.error).toBe("mail failed: this recipient no longer receives messages about the incident");
});

test("if a recipient's success cannot be recorded, only that mail is retried, with the same message id", async () => {
  const which = `individual-${individuals[4]}`;
  await outbox.db.execute(sql`
    create function no_note() returns trigger language plpgsql as $$ begin raise 'killed'; end $$`);
  await outbox.db.execute(
    sql.raw(`create trigger no_note before update on delivery for each row
      when (new.recipient = '${which}' and new.state = 'Done') execute function no_note()`),
  );
  await startWorker();
  await enqueue();
  const done = eq(delivery.state, "Done");
  await until("the others", async () => (await outbox.db.$count(delivery, done)) === people - 1);
  await until("a failed attempt", () => outbox.logged.join("").includes("could not record"));
  await outbox.db.execute(sql`drop trigger no_note on delivery; drop function no_note`);
  // As if its lease had expired.
  await outbox.db.execute(sql`update delivery set lease_until = null where state = 'Queued'`);
  await ended();
  expect(await counts()).toEqual({ Split: 1, Done: people });
  const twice = server.received.filter(({ to }) => to[0] === addressOf(4));
  expect(twice.length).toBeGreaterThan(1);
  expect(new Set(twice.map(({ headers }) => headers["message-id"])).size).toBe(1);
  expect(received().filter((address) => address !== addressOf(4))).toEqual(
    everybody.filter((address) => address !== addressOf(4)),
  );
});

test("a recipient whose mail is being sent when the worker stops is left to the next worker", async () => {
  answer = (address, time) => (address === addressOf(4) && time === 1 ? hang : undefined);
  await startWorker(100);
  await enqueue();
  await until("all the others", () => server.received.length === people - 1);
  await stopWorkers();
  await startWorker();
  await ended();
  expect(received()).toEqual(everybody);
});
