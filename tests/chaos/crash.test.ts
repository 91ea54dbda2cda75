import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { type Claim, claimDue } from "../../core/schedule/claims.ts";
import { extendRun, finishRun, whileHeld } from "../../core/schedule/runs.ts";
import { type DatabaseClient, openDatabase } from "../../drizzle/client.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../drizzle/embedded.ts";
import { upgrade } from "../../drizzle/revision/upgrade.ts";
import { run } from "../../drizzle/schema/index.ts";
import { TestClock } from "../support/clock.ts";
import { everySeconds, scheduleOf } from "../support/domain/schedule.ts";
import { killPostgres } from "../support/process/processes.ts";

setDefaultTimeout(120_000);

/** All processes of a PostgreSQL with durable settings are killed: what it acknowledged must still be there. */

let directory: string;
let server: EmbeddedPostgres;
let client: DatabaseClient;
const clock = new TestClock();
const task = everySeconds("tick", 60);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-crash-"));
  await start();
  await upgrade({ url: server.url });
  await client.db.execute(sql`create table effect (slot timestamptz)`);
});
afterAll(async () => {
  await client.close();
  await server.stop();
  await rm(directory, { recursive: true, force: true });
});
beforeEach(async () => {
  // The work of a worker in its first minute, and the slots of the next one.
  await claimDue(as("a"), task);
  clock.advance(60);
});

async function start(): Promise<void> {
  server = await startEmbeddedPostgres({ directory: join(directory, "postgres"), durable: true });
  client = openDatabase(server.url, 4);
}

/** Lets only commits write to disk. */
async function holdWriters(): Promise<void> {
  const writers = await client.db.execute<{ pid: number }>(sql`
    select pid from pg_stat_activity where backend_type in ('walwriter', 'background writer', 'checkpointer')`);
  for (const { pid } of writers) process.kill(pid, "SIGSTOP");
}

async function crash(): Promise<void> {
  await Promise.all([server.exited, killPostgres()]);
  await client.close();
  await start();
}

const as = (owner: string) => scheduleOf(client.db, clock, owner);
const rows = () => client.db.select({ slot: run.slot, owner: run.owner, state: run.state }).from(run);
const effects = async (slot: Date) =>
  (await client.db.execute(sql`select from effect where slot = ${slot.toISOString()}`)).length;
const ofSlot = async (slot: Date) => (await rows()).filter((one) => one.slot.getTime() === slot.getTime());

async function claimed(owner: string): Promise<Claim> {
  const answer = await claimDue(as(owner), task, clock.now());
  if (!("claim" in answer)) throw new Error("nothing was due");
  return answer.claim;
}

const write = (claim: Claim, behind?: () => Promise<unknown>) =>
  whileHeld(as(claim.owner), claim, 60, async (tx) => {
    await tx.execute(sql`insert into effect values (${claim.slot.toISOString()})`);
    await behind?.();
  });

test("a lost claim is claimed again, and its first worker can no longer commit", async () => {
  await holdWriters();
  const lost = await claimed("a");
  // It has also written, but the commit was not acknowledged.
  write(lost, () => new Promise(() => {})).catch(() => {});
  await crash();
  expect(await ofSlot(lost.slot)).toEqual([]);
  const again = await claimed("b");
  expect(again).toMatchObject({ slot: lost.slot, attempt: 1 });
  await expect(write(lost)).rejects.toThrow("This worker lost the run");
  expect(await extendRun(as("a"), lost)).toBe(false);
  expect(await finishRun(as("a"), lost, { faults: [] })).toBe(false);
  await write(again);
  expect(await finishRun(as("b"), again, { faults: [] })).toBe(true);
  expect(await effects(lost.slot)).toBe(1);
});

test("the results of a run survive, together with its claim", async () => {
  await holdWriters();
  const claim = await claimed("a");
  await write(claim);
  await crash();
  expect(await ofSlot(claim.slot)).toMatchObject([{ owner: "a", state: "Running" }]);
  expect(await effects(claim.slot)).toBe(1);
  expect(await claimDue(as("b"), task, clock.now())).toHaveProperty("lookAgain");
  expect(await finishRun(as("a"), claim, { faults: [] })).toBe(true);
});

test("the end of a run survives", async () => {
  await holdWriters();
  const claim = await claimed("a");
  expect(await finishRun(as("a"), claim, { faults: [] })).toBe(true);
  await crash();
  expect(await ofSlot(claim.slot)).toMatchObject([{ state: "Done" }]);
});
