import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { accessLease, token } from "../../drizzle/schema/index.ts";
import { type HeldConnection, holdConnectionsTo } from "../support/database/held_connection.ts";
import { type AccessWorld, expire, startAccessWorld } from "../support/domain/access_world.ts";
import { effort } from "../support/effort.ts";
import { until, within } from "../support/process/until.ts";

let world: AccessWorld;
let way: HeldConnection;
let role: string;
beforeAll(async () => {
  world = await startAccessWorld();
  const { settings } = world.target;
  way = await holdConnectionsTo(String(settings.host), Number(settings.port));
  role = await world.makeRole({ settings: { ...settings, port: way.port } });
});
afterAll(async () => {
  way[Symbol.dispose]();
  await world[Symbol.asyncDispose]();
});

const run = (...args: string[]) => {
  const { config } = world.server;
  return Bun.spawn([process.execPath, `${import.meta.dir}/../support/domain/lease_program.ts`, ...args], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      SVC_DATABASE_URL: config.databaseUrl,
      SVC_KEY_SECRET: config.keySecret,
      SVC_PLUGIN_CREDENTIAL: "postgresql-role",
    },
    stdio: ["ignore", "ignore", "inherit"],
  });
};
/** Runs the program and kills it after `messages` messages to the target. @returns whether it got that far */
async function killAfter(messages: number, ...args: string[]): Promise<boolean> {
  const held = way.holdAfter(messages);
  const program = run(...args);
  const done =
    args.length > 0 ? program.exited : until("the revocation", async () => (await unfinished()) === 0);
  const wasHeld = await within(
    "the next message to be held",
    Promise.race([held.then(() => true), done.then(() => false)]),
    30,
  );
  program.kill("SIGKILL");
  await program.exited;
  way.release();
  return wasHeld;
}
const unfinished = () => world.server.db.$count(accessLease, sql`finished_at is null`);
/** Lets the claims and calls of a dead process time out. */
const passTime = () =>
  world.server.db
    .update(accessLease)
    .set({ leaseUntil: null, dueAt: sql`now()`, createdAt: sql`created_at - interval '1 hour'` })
    .where(sql`finished_at is null`);
async function endsWithoutTrace(): Promise<void> {
  await using _worker = world.startWorker();
  await until("all leases to end", async () => (await unfinished()) === 0);
  expect(await world.target.leases()).toEqual([]);
}
/** Tests every step with SVC_TEST_EFFORT=4 or more, and a sample in an ordinary run. */
const stride = Math.max(1, Math.round(4 / effort(1)));

test("no role survives a server killed while issuing it, after any message to the target", async () => {
  const [row] = await world.server.db.select().from(token).where(eq(token.userName, "alice@example.com"));
  const { jti: tokenId, expiresAt, groups } = row!;
  const actor = { kind: "user", user: "alice@example.com", groups, admin: false, tokenId, expiresAt };
  let messages = 0;
  while (await killAfter(messages, role, JSON.stringify(actor))) {
    await passTime();
    await endsWithoutTrace();
    messages += stride;
  }
  expect(messages).toBeGreaterThan(3);
  // The last run issued a lease.
  const rows = await world.server.db
    .select()
    .from(accessLease)
    .where(sql`finished_at is null`);
  expect(rows.map(({ state }) => state)).toEqual(["Active"]);
  await passTime();
  await endsWithoutTrace();
}, 120_000);

test("no role survives a worker killed while revoking it, after any message to the target", async () => {
  let messages = 0;
  for (;;) {
    const { body } = await world.issue(world.alice, role);
    const session = world.target.open(body.credential.fields);
    await session.unsafe(`create table mine_${body.id} (id int)`);
    await expire(world, body.id);
    const wasHeld = await killAfter(messages);
    if (wasHeld) expect((await world.leaseRow(body.id)).state).toBe("Revoking");
    await passTime();
    await endsWithoutTrace();
    await session.end({ timeout: 0 });
    if (!wasHeld) break;
    messages += stride;
  }
  expect(messages).toBeGreaterThan(6);
}, 120_000);
