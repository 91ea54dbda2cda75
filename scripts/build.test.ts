import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../package.json" with { type: "json" };
import { createEmptyTestDatabase } from "../tests/support/database/database.ts";
import { build, describeSource } from "./build.ts";

setDefaultTimeout(60_000);

let directory: string;
let program: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-build-test-"));
  program = join(directory, "svc");
  await build(program);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

function run(args: string[], env: Record<string, string> = {}) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([program, ...args], { cwd: directory, env });
  return { exitCode, out: stdout.toString(), err: stderr.toString() };
}

test("the executable runs without the source tree", () => {
  // A clone without git has none.
  const source = describeSource();
  const said = source ? `${version} (${source})` : version;
  expect(run(["--version"])).toEqual({ exitCode: 0, out: `${said}\n`, err: "" });
  expect(run(["--help"])).toMatchObject({ exitCode: 0, err: "" });
  expect(run(["login", "--help"])).toMatchObject({ exitCode: 0, err: "" });
});

test("commands that need the source tree say so in one line", () => {
  for (const command of [["up"], ["idp", "start"]]) {
    const { exitCode, err } = run(command);
    expect(exitCode).toBe(1);
    expect(err).toBe(
      `svc: svc ${command.join(" ")} is for trials and needs the source tree: clone it and type npm start\n`,
    );
  }
});

test("it has the included plugins, and refuses packages", () => {
  expect(run(["plugin", "list"])).toMatchObject({
    exitCode: 0,
    out: expect.stringContaining("term-source"),
    err: "",
  });
  expect(run(["plugin", "list"], { SVC_PLUGIN_PACKAGES: "svc-plugin-glossary" })).toEqual({
    exitCode: 1,
    out: "",
    err: "svc: SVC_PLUGIN_PACKAGES: the single executable cannot load packages: run svc from its source tree\n",
  });
});

test("it has the revisions, and serves", async () => {
  await using database = await createEmptyTestDatabase();
  const env = {
    SVC_DATABASE_URL: database.url,
    SVC_KEY_SECRET: "x".repeat(40),
    SVC_OIDC_ISSUER: "https://id.example.com",
  };
  expect(run(["database", "upgrade"], env)).toMatchObject({ exitCode: 0 });
  const server = spawn(program, ["server", "start", "server/main:app", "--port", "0"], {
    cwd: directory,
    env,
  });
  const ended = new Promise((settle) => server.once("close", settle));
  let said = "";
  const address = await new Promise<string>((settle, reject) => {
    server.stderr.on("data", (chunk) => {
      said += chunk;
      const found = said.match(/listening on ([^"\s]+)/)?.[1];
      if (found) settle(found);
    });
    ended.then(() => reject(new Error(said)));
  });
  expect((await fetch(`${address}/healthcheck`)).status).toBe(200);
  server.kill("SIGTERM");
  await ended;
});

test("it has the example data", async () => {
  await using database = await createEmptyTestDatabase();
  expect(run(["database", "restore", "--example"], { SVC_DATABASE_URL: database.url })).toMatchObject({
    exitCode: 0,
    out: expect.stringMatching(/^Loaded the example: 43 incidents, /),
  });
});
