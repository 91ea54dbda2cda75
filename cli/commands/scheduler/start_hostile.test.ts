import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { populate } from "../../../core/populate/populate.ts";
import { openDatabase } from "../../../drizzle/client.ts";
import { createTestDatabase, type TestDatabase } from "../../../tests/support/database.ts";
import { svc } from "../../testing/process.ts";

let database: TestDatabase;
let directory: string;

/** Terms, and on the way to them what the configuration says. */
const plugin = `export default {
  title: "Grim", slug: "grim", version: "1.0.0", type: "term", author: "nobody", description: "Does harm",
  configSchema: { type: "object", properties: { mode: { type: "string" } }, required: ["mode"] },
  create: async ({ mode }) => {
    if (mode === "exits at once") process.exit(0);
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
  if (mode === "throws on and on")
    for (let nth = 0; nth < 500; nth += 1) setTimeout(() => { throw { code: "E" + (nth % 200) }; });
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
  ...{ SVC_DATABASE_URL: database.url, SVC_PLUGIN_PACKAGES: "svc-plugin-grim" },
  ...{ SVC_PLUGIN_TERM: "grim", SVC_PLUGIN_GRIM_MODE: mode },
});
const run = (task: string, mode: string) =>
  svc(["scheduler", "start", task, "--eager"], environment(mode), directory);

test("what a plugin throws behind our back is logged without its message, and the run goes on", async () => {
  const { code, stdout, stderr } = await run("term-sync", "throws");
  expect({ code, stdout }).toEqual({ code: 0, stdout: "term-sync: 1 done, 0 skipped, 0 failed\n" });
  expect(stderr).toContain('"msg":"something threw that nobody waits for: Error"');
  expect(stderr).toContain('"msg":"something threw that nobody waits for: Error, E_GRIM"');
  expect(stderr).toContain('"msg":"something threw that nobody waits for: object"');
  expect(stderr).toContain("svc-plugin-grim/index.js");
  expect(stderr).not.toContain("hunter2");
});

test("so is what it throws while it is set up", async () => {
  const { code, stderr } = await run("term-sync", "throws at once");
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringContaining('"something threw that nobody waits for: object, E_EARLY"'),
  });
});

test("what throws on and on is counted, in a few lines", async () => {
  const { code, stderr } = await run("term-sync", "throws on and on");
  expect(code).toBe(0);
  const lines = stderr.split("\n").filter((line) => line.includes("that nobody waits for"));
  const repeats = lines.map((line) => (JSON.parse(line) as { repeats?: number }).repeats ?? 1);
  expect(repeats.reduce((sum, count) => sum + count, 0)).toBe(500);
  expect(lines.length).toBeLessThan(100);
});

test.each(["exits", "exits at once"])(
  "a plugin that ends the process (%s) does it as a failure: nobody is told that all is well",
  async (mode) => {
    expect((await run("term-sync", mode)).code).toBe(1);
  },
);

test("that nobody reads the outcome any more is no failure", async () => {
  const main = join(import.meta.dir, "..", "..", "main.ts");
  const command = [process.execPath, "--no-env-file", main, "scheduler", "start", "calculate-incident-cost"];
  const child = Bun.spawn(
    ["sh", "-c", '{ "$@"; echo "exit code $?" >&2; } | :', "sh", ...command, "--eager", "--keep"],
    { env: { PATH: process.env.PATH, ...environment("quiet") }, cwd: directory, stderr: "pipe" },
  );
  expect(await new Response(child.stderr).text()).toContain("exit code 0\n");
});
