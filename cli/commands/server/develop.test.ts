import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../../platform/free_port.ts";
import { createTestDatabase, type TestDatabase } from "../../../tests/support/database/database.ts";
import { effort } from "../../../tests/support/effort.ts";
import { appFolder, startServing } from "../../../tests/support/http/serving.ts";
import { descendants, untilGone } from "../../../tests/support/process/processes.ts";
import { until } from "../../../tests/support/process/until.ts";

const root = join(import.meta.dir, "../../..");
/** A source tree that tests can edit. */
const tree = mkdtempSync(join(tmpdir(), "svc-develop-"));
const main = join(tree, "server/main.ts");
let database: TestDatabase;

beforeAll(async () => {
  for (const name of [
    "cli",
    "core",
    "drizzle",
    "platform",
    "plugins",
    "server",
    "trial",
    "web",
    "package.json",
    "bunfig.toml",
    "tsconfig.json",
  ]) {
    cpSync(join(root, name), join(tree, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"));
  database = await createTestDatabase();
});
afterAll(async () => {
  rmSync(tree, { recursive: true, force: true });
  await database[Symbol.asyncDispose]();
});

const source = (answer: string) => `
import { openServer } from "./open.ts";
export const app = await openServer();
app.app.get("/edit", () => "${answer}");
`;
/** Starts in half of the time. */
const light = (answer: string) => `
import { Elysia } from "elysia";
export const app = new Elysia().get("/edit", () => "${answer}");
`;

async function develop(args: readonly string[] = [], variables: Record<string, string> = {}) {
  const port = await freePort();
  const env = {
    PATH: process.env.PATH,
    SVC_DATABASE_URL: database.url,
    SVC_OIDC_ISSUER: "http://127.0.0.1:1",
    SVC_KEY_SECRET: "a-secret-for-tests-of-thirty-two-characters",
    ...variables,
  };
  const command = [process.execPath, "--no-env-file", join(tree, "cli/main.ts"), "server", "develop"];
  const child = Bun.spawn([...command, "--port", `${port}`, ...args], {
    cwd: tree,
    env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let words = "";
  const read = (async () => {
    for await (const chunk of child.stderr) words += new TextDecoder().decode(chunk);
  })();
  const ask = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: "close" } });
    return { status: response.status, text: await response.text() };
  };
  return {
    pid: child.pid,
    port,
    ask,
    words: () => words,
    answers: (text: string, seconds?: number) =>
      until(
        `the answer ${text}`,
        async () => {
          const answer = await ask("/edit").catch(() => undefined);
          return answer?.text.includes(text) ? answer : undefined;
        },
        seconds,
      ),
    end: async (signal: NodeJS.Signals) => {
      child.kill(signal);
      await child.exited;
      await read;
      return child.exitCode;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

test("serves every edit, never closes the port, and leaks nothing", async () => {
  writeFileSync(main, source("0"));
  await using server = await develop(["--log-level", "debug"]);
  await server.answers("0");
  const failures: string[] = [];
  let stopped = false;
  const client = (async () => {
    while (!stopped) {
      const { status } = await server
        .ask("/edit")
        .catch((error: { code?: string }) => ({ status: error.code }));
      if (status !== 200) failures.push(String(status));
      // Otherwise the client takes a processor from the process that starts.
      await Bun.sleep(1);
    }
  })();
  for (let edit = 1; edit <= effort(5); edit++) {
    const before = server.words().split("a file has changed").length;
    writeFileSync(main, source(`${edit}.`));
    await until("the change is noticed", () => server.words().split("a file has changed").length > before);
    await server.answers(`${edit}.`);
  }
  stopped = true;
  await client;
  expect(failures).toEqual([]);
  await until("one process is left", () => descendants(server.pid).length === 1);
  expect(server.words()).toMatch(/INFO: request \{.*"route":"\/edit"/);
}, 400_000);

test("a compile error is shown on the port and in the log until it is fixed; every folder is watched", async () => {
  writeFileSync(main, light("good"));
  await using server = await develop();
  await server.answers("good");
  writeFileSync(main, 'export const app = "<script>" {');
  const { status, text } = await server.answers("<h1>The server ended with exit code 1</h1>");
  expect(status).toBe(500);
  expect(text).toContain("&lt;script&gt;");
  expect(text).not.toContain("<script>");
  expect(server.words()).toContain("waiting for a change");
  expect(server.words()).toMatch(/error: .*"<script>" \{|main\.ts/);
  writeFileSync(main, light("mended"));
  await server.answers("mended");
  for (const file of [
    "core/new.ts",
    "plugins/new.ts",
    "drizzle/schema/new.ts",
    ".env",
    "server/page/new.css",
  ]) {
    const before = server.words().split("serving on").length;
    writeFileSync(join(tree, file), "");
    await until(`a restart after ${file}`, () => server.words().split("serving on").length > before);
  }
}, 60_000);

test("a new process that hangs is stopped, and the next change starts another", async () => {
  writeFileSync(main, light("good"));
  await using server = await develop(["--timeout-start", "10"]);
  await server.answers("good");
  writeFileSync(main, "setInterval(() => {}, 1000);\nexport const app = await new Promise(() => {});");
  const { text } = await server.answers("<h1>The server did not answer within 10 s</h1>", 60);
  expect(text).toContain("It starts again when a file changes");
  expect(descendants(server.pid)).toHaveLength(0);
  writeFileSync(main, light("mended"));
  await server.answers("mended", 60);
}, 150_000);

test("shows an invalid configuration, also at the first start", async () => {
  writeFileSync(main, source("configured"));
  writeFileSync(join(tree, ".env"), "SVC_SSO=saml\n");
  await using server = await develop([], { METRIC_PROVIDERS: "otlp,prometheus" });
  const { text } = await server.answers("The server ended");
  expect(text).toContain("SVC_SSO: &quot;saml&quot; is not one of oidc, proxy");
  writeFileSync(join(tree, ".env"), "");
  await server.answers("configured");
  expect(server.words()).toContain(
    "svc: svc server develop does not serve /metrics; use svc server start or svc up\n",
  );
}, 60_000);

test.each(["SIGTERM", "SIGKILL"] as const)("%s leaves nothing behind", async (signal) => {
  writeFileSync(main, light("x"));
  await using server = await develop();
  await server.answers("x");
  const below = descendants(server.pid);
  expect(below).toHaveLength(1);
  const code = await server.end(signal);
  if (signal !== "SIGKILL") expect(code).toBe(0);
  await untilGone(below);
  await expect(server.ask("/")).rejects.toThrow();
});

test("svc server start --reload, of the working directory or of --reload-dir", async () => {
  using folder = appFolder();
  const touch = (name: string) =>
    writeFileSync(join(folder.path, name), `export const at = ${Math.random()};`);
  await using server = await startServing(folder.path, ["--reload"]);
  const { pid } = await server.ask();
  touch("other.ts");
  await until("another process", async () => (await server.ask()).pid !== pid);
  using elsewhere = appFolder();
  await using second = await startServing(folder.path, ["--reload", "--reload-dir", elsewhere.path]);
  const first = (await second.ask()).pid;
  touch("other.ts");
  // Its own log may be here: a restart that is logged must not cause another.
  writeFileSync(join(elsewhere.path, "server.log"), "line\n");
  await Bun.sleep(400);
  expect(second.said()).not.toContain("a file has changed");
  expect((await second.ask()).pid).toBe(first);
  writeFileSync(join(elsewhere.path, "a.ts"), "");
  await until("another process", async () => (await second.ask()).pid !== first);
});
