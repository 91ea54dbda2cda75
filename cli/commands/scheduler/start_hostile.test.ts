import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { populate } from "../../../core/populate/populate.ts";
import { scheduledTasks } from "../../../core/schedule/tasks.ts";
import { openDatabase, openSql } from "../../../drizzle/client.ts";
import { spawnSvc, svc } from "../../../tests/support/cli/process.ts";
import { createTestDatabase, type TestDatabase } from "../../../tests/support/database/database.ts";
import { descendants, untilGone } from "../../../tests/support/process/processes.ts";
import { until } from "../../../tests/support/process/until.ts";

let database: TestDatabase;
let directory: string;

/** Lists terms, and misbehaves as configured on the way. */
const plugin = `export default {
  title: "Grim", slug: "grim", version: "1.0.0", type: "term", author: "nobody", description: "Does harm",
  configSchema: { type: "object", properties: { mode: { type: "string" } }, required: ["mode"] },
  create: async ({ mode }) => {
    if (mode === "exits at once") process.exit(0);
    if (mode === "loops at once") for (;;);
    if (mode === "throws at once") {
      setTimeout(() => { throw { code: "E_EARLY" }; });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return { list: () => list(mode) };
  },
};
async function list(mode) {
  if (mode === "exits") process.exit(0);
  if (mode === "throws") {
    setTimeout(() => { throw new Error("hunter2"); });
    setTimeout(() => { throw { detail: "no answer from https://svc:hunter2@host" }; });
    Promise.reject(Object.assign(new Error("hunter2"), { code: "E_GRIM" }));
  }
  if (mode === "loops") for (;;);
  // Equivalent for the caller, but without using the processor.
  if (mode === "is frozen") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  if (mode === "throws on and on") {
    for (let nth = 0; nth < 500; nth += 1) setTimeout(() => { throw { code: "E" + (nth % 200) }; });
    // Repeats are logged once a second.
    await new Promise((resolve) => setTimeout(resolve, 2500));
  }
  await new Promise((resolve) => setTimeout(resolve, 100));
  return [{ externalId: "1", text: "term", definitions: [] }];
}`;

beforeAll(async () => {
  database = await createTestDatabase();
  const { db, close } = openDatabase(database.url, 1);
  await populate(db);
  await close();
  directory = await mkdtemp(join(tmpdir(), "svc-hostile-"));
  const folder = join(directory, "node_modules", "svc-plugin-grim");
  await mkdir(folder, { recursive: true });
  const description = { name: "svc-plugin-grim", version: "1.0.0", type: "module", exports: "./index.js" };
  await Bun.write(join(folder, "package.json"), JSON.stringify(description));
  await Bun.write(join(folder, "index.js"), plugin);
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
  await database[Symbol.asyncDispose]();
});

const environment = (mode: string) => ({
  SVC_DATABASE_URL: database.url,
  SVC_PLUGIN_PACKAGES: "svc-plugin-grim",
  SVC_PLUGIN_TERM: "grim",
  SVC_PLUGIN_GRIM_MODE: mode,
});
const run = (task: string, mode: string) =>
  svc(["scheduler", "start", task, "--eager"], environment(mode), directory);

test("an unhandled exception during create is logged without its message", async () => {
  const { code, stderr } = await run("term-sync", "throws at once");
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringContaining('"unhandled exception: object, E_EARLY"'),
  });
});

test("repeated exceptions are counted in a few lines", async () => {
  const { code, stderr } = await run("term-sync", "throws on and on");
  expect(code).toBe(0);
  const lines = stderr.split("\n").filter((line) => line.includes("unhandled exception"));
  const repeats = lines.map((line) => (JSON.parse(line) as { repeats?: number }).repeats ?? 1);
  expect(repeats.reduce((sum, count) => sum + count, 0)).toBe(500);
  expect(lines.length).toBeLessThan(100);
});

test("a plugin that exits or loops during create prevents the start", async () => {
  const env = { ...environment("exits at once"), SVC_PLUGIN_TIMEOUT: "1" };
  const start = (mode: string) =>
    svc(["scheduler", "start"], { ...env, SVC_PLUGIN_GRIM_MODE: mode }, directory);
  const [exits, loops] = await Promise.all([start("exits at once"), start("loops at once")]);
  const about = "svc: SVC_PLUGIN_TERM: plugin grim of svc-plugin-grim";
  expect(exits).toEqual({
    code: 1,
    stdout: "",
    stderr: `${about} cannot be set up: its process exited with code 0\n`,
  });
  expect(loops).toEqual({ code: 1, stdout: "", stderr: `${about} was not set up within 1 s\n` });
});

test.each(["SIGTERM", "SIGKILL"] as const)(
  "the process of a looping plugin ends with its worker after %s",
  async (signal) => {
    const args = ["scheduler", "start", "term-sync", "--eager"];
    const worker = spawnSvc(args, environment("loops"), undefined, directory);
    const processes = await until("the plugin's process", () => {
      const found = descendants(worker.child.pid).filter(({ command }) => command.includes("host.ts"));
      return found.length > 0 && found;
    });
    const sql = openSql(database.url, { max: 1 });
    await until("the run", async () => (await sql`select from run where state = 'Running'`).length > 0);
    worker.child.kill(signal);
    await worker.finished;
    await untilGone(processes);
    // The run of a killed worker waits for its lease.
    await sql`delete from run where state = 'Running'`;
    await sql.end();
    if (signal === "SIGTERM") expect(worker.said()).toContain("svc: term-sync: stopped\n");
  },
);

test("while a plugin hangs, other tasks run, the worker is healthy, and SIGTERM shuts it down", async () => {
  const sql = openSql(database.url, { max: 1 });
  // All tasks except the daily ones are due.
  await sql`delete from run`;
  await sql`delete from scheduled_task`;
  for (const { name } of scheduledTasks)
    await sql`insert into scheduled_task (name, since) values (${name}, now() - interval '1 hour')`;
  const args = ["scheduler", "start", "--health-port", "0"];
  const worker = spawnSvc(args, environment("is frozen"), undefined, directory);
  await worker.says('/healthcheck"');
  const others = ["calculate-incident-cost", "incident-task-sync", "application-sync"];
  await until("the other tasks", async () => {
    const done = await sql`select from run where state = 'Done' and task in ${sql(others)}`;
    return done.length >= others.length;
  });
  expect([...(await sql`select state from run where task = 'term-sync'`)]).toEqual([{ state: "Running" }]);
  const [, address] = worker.said().match(/health at ([^"\s]+)/)!;
  expect((await fetch(address!)).status).toBe(200);
  const processes = descendants(worker.child.pid).filter(({ command }) => command.includes("host.ts"));
  expect(processes).toHaveLength(1);
  worker.child.kill("SIGTERM");
  expect((await worker.finished).code).toBe(0);
  await untilGone(processes);
  await sql.end();
}, 60_000);

test("succeeds even if nobody reads the result", async () => {
  const main = join(import.meta.dir, "..", "..", "main.ts");
  const command = [process.execPath, "--no-env-file", main, "scheduler", "start", "calculate-incident-cost"];
  const child = Bun.spawn(
    ["sh", "-c", '{ "$@"; echo "exit code $?" >&2; } | :', "sh", ...command, "--eager", "--keep"],
    { env: { PATH: process.env.PATH, ...environment("quiet") }, cwd: directory, stderr: "pipe" },
  );
  expect(await new Response(child.stderr).text()).toContain("exit code 0\n");
});
