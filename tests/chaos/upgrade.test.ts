import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSql } from "../../drizzle/client.ts";
import { canonicalSchema } from "../../drizzle/revision/canonical.ts";
import { upgrade } from "../../drizzle/revision/upgrade.ts";
import { countFrames } from "../support/browser/frames.ts";
import { createEmptyTestDatabase } from "../support/database/database.ts";
import { testRevision } from "../support/database/revision.ts";
import { effort } from "../support/effort.ts";

/** Real processes that upgrade one database: killed, racing and blocking each other. */

const program = join(import.meta.dir, "../support/database/upgrade_program.ts");
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-revisions-"));
});
afterAll(() => rm(folder, { recursive: true }));

const revisions = [
  testRevision(
    "1",
    [],
    "create table a (id int primary key, b text);\ncreate table c (id int references a);",
  ),
  testRevision("2", ["1"], "-- svc: no-transaction\ncreate index concurrently a_b_idx on a (b);"),
  testRevision(
    "3",
    ["2"],
    "insert into a values (1, 'x');\nalter table a add column d int default 7 not null;",
  ),
  testRevision("4", ["3"], "-- svc: no-transaction\ndrop index concurrently a_b_idx;"),
];

async function writeRevisions(name: string, list = revisions): Promise<string> {
  const directory = join(folder, name);
  for (const { id, up, down, manifest } of list) {
    await mkdir(join(directory, id), { recursive: true });
    await writeFile(join(directory, id, "up.sql"), up);
    await writeFile(join(directory, id, "down.sql"), down);
    await writeFile(join(directory, id, "manifest.json"), JSON.stringify(manifest));
  }
  return directory;
}

function spawnUpgrade(directory: string, url: string) {
  const child = Bun.spawn([process.execPath, program, directory], {
    env: { PATH: process.env.PATH, SVC_DATABASE_URL: url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { child, finished: child.exited.then(async (code) => ({ code, output: (await output).join("") })) };
}

async function stateOf(url: string): Promise<string> {
  const sql = openSql(url, { max: 1 });
  const rows = await sql`select id, state from revision order by id`;
  const state = [
    JSON.stringify(rows),
    JSON.stringify(await sql`select * from a order by id`),
    await canonicalSchema(sql),
  ];
  await sql.end();
  return state.join("\n");
}

test("killed before any message to PostgreSQL, an upgrade reaches head when it is run again", async () => {
  const directory = await writeRevisions("kill");
  await using whole = await createEmptyTestDatabase();
  expect(await spawnUpgrade(directory, whole.url).finished).toMatchObject({ code: 0 });
  const expected = await stateOf(whole.url);
  let killed = 0;
  for (let at = 1; ; at += 1) {
    await using database = await createEmptyTestDatabase();
    let kill = () => {};
    const proxy = await countFrames(database.url, (frame) => {
      if (frame < at) return "pass";
      kill();
      return "stop";
    });
    const run = spawnUpgrade(directory, proxy.url);
    kill = () => run.child.kill("SIGKILL");
    const { code } = await run.finished;
    await proxy.close();
    if (code === 0) break;
    killed += 1;
    const again = await spawnUpgrade(directory, database.url).finished;
    expect({ at, ...again }).toMatchObject({ at, code: 0 });
    expect({ at, state: await stateOf(database.url) }).toEqual({ at, state: expected });
  }
  // Each revision needs several messages; fewer would mean that the proxy does not count them.
  expect(killed).toBeGreaterThan(20);
}, 300_000);

test("killed while PostgreSQL runs its statement, an upgrade reaches head when it is run again", async () => {
  const slow = [
    testRevision("1", [], "create table a (id int primary key, b text);"),
    testRevision(
      "2",
      ["1"],
      "alter table a add column c int; select pg_sleep(2); alter table a add column d int;",
    ),
  ];
  const directory = await writeRevisions("slow", slow);
  await using database = await createEmptyTestDatabase();
  const run = spawnUpgrade(directory, database.url);
  const sql = openSql(database.url, { max: 1 });
  const isSleeping = () =>
    sql`select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`;
  while ((await isSleeping()).length === 0) await Bun.sleep(5);
  run.child.kill("SIGKILL");
  await run.finished;
  // The backend of the killed process may still be working and holding the lock: the next run waits for it.
  expect(await spawnUpgrade(directory, database.url).finished).toMatchObject({ code: 0 });
  const columns = await sql`select count(*)::int as n from information_schema.columns where table_name = 'a'`;
  expect(columns).toMatchObject([{ n: 4 }]);
  await sql.end();
});

test("four concurrent upgrades, repeated: none fails, and each revision is applied once", async () => {
  const directory = await writeRevisions("race");
  for (let round = 0; round < effort(5); round += 1) {
    await using database = await createEmptyTestDatabase();
    const runs = await Promise.all(
      Array.from({ length: 4 }, () => spawnUpgrade(directory, database.url).finished),
    );
    expect(runs.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    const lines = runs.flatMap(({ output }) => output.trim().split("\n")).filter(Boolean);
    expect(lines.toSorted()).toEqual(["1", "2", "3", "4"]);
  }
}, 300_000);

test("an index is built concurrently while others wait for the lock and rows are written", async () => {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  await upgrade({ url, revisions, target: "1" });
  const writer = openSql(url, { max: 1 });
  // CREATE INDEX CONCURRENTLY has to wait for this one.
  const { promise: open, resolve: commit } = Promise.withResolvers<void>();
  const { promise: written, resolve: isWritten } = Promise.withResolvers<void>();
  const writing = writer.begin(async (transaction) => {
    await transaction`insert into a values (5, 'y')`;
    isWritten();
    await open;
  });
  await written;
  const waits: string[] = [];
  const upgrades = Array.from({ length: 3 }, () =>
    upgrade({ url, revisions, target: "2", notice: (message) => waits.push(message) }),
  );
  const sql = openSql(url, { max: 1 });
  while (waits.length < 2) await Bun.sleep(10);
  expect(waits[0]).toMatch(
    /^waiting for another schema change: svc database upgrade \(.*\), backend \d+ from 127\.0\.0\.1$/,
  );
  commit();
  await writing;
  const results = await Promise.all(upgrades);
  expect(results.flatMap(({ applied }) => applied)).toEqual(["2"]);
  expect(
    await sql`select indisvalid as valid from pg_index where indexrelid = 'a_b_idx'::regclass`,
  ).toMatchObject([{ valid: true }]);
  await Promise.all([sql.end(), writer.end()]);
});

test("a table in use delays a revision, and is not blocked by it meanwhile", async () => {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  await upgrade({ url, revisions, target: "2" });
  const reader = openSql(url, { max: 1 });
  const { promise: open, resolve: commit } = Promise.withResolvers<void>();
  const { promise: hasRead, resolve: isRead } = Promise.withResolvers<void>();
  const reading = reader.begin(async (transaction) => {
    await transaction`select * from a`;
    isRead();
    await open;
  });
  await hasRead;
  // It pauses between attempts, and must not be mistaken for an idle session.
  const preset = openSql(url, { max: 1 });
  await preset.unsafe(`alter database "${new URL(url).pathname.slice(1)}" set idle_session_timeout = '50ms'`);
  await preset.end();
  const notices: string[] = [];
  const change = upgrade({ url, revisions, notice: (message) => notices.push(message) });
  while (notices.length === 0) await Bun.sleep(20);
  expect(notices[0]).toBe("up.sql of revision 3: a table is in use, trying again");
  commit();
  await reading;
  expect(await change).toMatchObject({ applied: ["3", "4"] });
  await reader.end();
});
