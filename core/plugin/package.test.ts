import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { builtinPlugins } from "../../plugins/builtin.ts";
import { noPlugins } from "../../tests/support/domain/plugins.ts";
import { until } from "../../tests/support/process/until.ts";
import { readConfig, variables } from "../config.ts";
import type { Context } from "../context.ts";
import { type CallOptions, callPlugin, type Outcome } from "./call.ts";
import { loadPackages } from "./load.ts";
import { openPlugins } from "./open.ts";
import { PluginPackage } from "./package.ts";

// A third-party package, in the processes that svc runs it in. The document's id says what it does.

const program = `
import { readFileSync, writeFileSync } from "node:fs";
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const fill = (make) => { const all = []; for (;;) all.push(make(all.length)); };
let calls = 0;
let setUps = 0;
const certifier = {
  title: "Certifier", slug: "certifier", version: "1.0.0", type: "credential", author: "nobody", description: "Certifies",
  configSchema: { type: "object", properties: {} },
  roleSchema: { type: "object", properties: { mount: { type: "string" } } }, revocable: "expiry", publicKey: "ssh",
  create: () => ({ check: () => [], issue: () => ({ kind: "ssh", fields: {} }), revoke: () => {} }),
};
const harm = {
  title: "Harm", slug: "harm", version: "1.0.0", type: "document", author: "nobody", description: "Does harm",
  configSchema: { type: "object", properties: { key: { type: "string", secret: true } }, required: ["key"] },
  create({ key }, { clock, fetch, log }) {
    setUps += 1;
    const acts = {
      pid: () => String(process.pid),
      calls: () => String(calls),
      environment: () => JSON.stringify(process.env),
      command: () => readFileSync("/proc/self/cmdline", "utf8").replaceAll("\\0", " "),
      clock: () => clock.now().toISOString(),
      fetch: async (_, url) => await (await fetch(url)).text(),
      key: (call) => call.key,
      loop: () => { for (;;); },
      hang: () => new Promise(() => {}),
      stops: ({ signal }) => new Promise((_, stop) => signal.addEventListener("abort", () => stop(new Error()))),
      objects: () => fill((i) => ({ i, list: [i] })),
      buffers: () => fill(() => new Uint8Array(20_000_000).fill(1)),
      exit: () => process.exit(0),
      abort: () => process.abort(),
      kill: () => process.kill(process.pid, "SIGKILL"),
      throws: () => { throw { detail: "no " + key, permanent: true, retryAfter: 7 }; },
      refuses: () => { throw { detail: "too long", field: "duration" }; },
      library: () => { throw Object.assign(new TypeError(key), { code: "E_HARM" }); },
      function: () => ({ text: () => "" }),
      ring: () => { const ring = {}; ring.ring = ring; return ring; },
      nothing: () => undefined,
      long: () => ({ text: "x".repeat(70_000_000) }),
      forge: () => { process.send?.({ id: 1 }); return String(process.send === undefined); },
      later_throw: () => { setTimeout(() => { throw new Error(key); }, 5); return "answered"; },
      later_exit: () => { setTimeout(() => process.exit(0), 150); return "answered"; },
      later_loop: (_, file) => { setTimeout(() => { writeFileSync(file, ""); for (;;); }); return "answered"; },
      /** Announces itself with a file, and takes its time on its first call. */
      slow: async (call, file) => {
        writeFileSync(file, process.pid + " " + call.key + "\\n", { flag: "a" });
        await wait(300);
        return "answered";
      },
      spawns: async (call, file) => {
        writeFileSync(file, String(Bun.spawn(["sleep", "600"]).pid));
        await acts.hang();
      },
      long_log: () => { log.info({ text: "x".repeat(20_000) }, "long"); return "logged"; },
      print: () => { for (let i = 0; i < 20_000; i += 1) console.log("x".repeat(1000)); return "printed"; },
      prints: () => { for (;;) console.log("x".repeat(1000)); },
      log: () => { for (let i = 0; i < 5000; i += 1) log.info({ i }, "line"); return "logged"; },
    };
    const text = async (call) => {
      calls += 1;
      const [act, argument] = call.document.resourceId.split(" ");
      const answer = await acts[act](call, argument);
      return typeof answer === "string" ? { text: answer } : answer;
    };
    const none = () => null;
    return { text, create: none, get: none, update: none, tasks: none, move: none, remove: none };
  },
};
export default [harm, certifier];`;

let directory: string;
let opened: Awaited<ReturnType<typeof openPlugins>>;
const logged: { facts: Record<string, unknown>; message: string }[] = [];
const now = new Date("2030-01-01T00:00:00.000Z");

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-package-"));
  const folder = join(directory, "node_modules", "svc-plugin-harm");
  await mkdir(folder, { recursive: true });
  const description = { name: "svc-plugin-harm", version: "1.0.0", type: "module", exports: "./index.js" };
  await Bun.write(join(folder, "package.json"), JSON.stringify(description));
  await Bun.write(join(folder, "index.js"), program);
  await Bun.write(join(directory, ".env"), "SVC_KEY_SECRET=from-the-file\n");
  const line = (facts: object, message: string) =>
    void logged.push({ facts: facts as Record<string, unknown>, message });
  const environment = {
    ...process.env,
    ...noPlugins,
    SVC_PLUGIN_PACKAGES: "svc-plugin-harm",
    SVC_PLUGIN_DOCUMENT: "harm",
    SVC_PLUGIN_CREDENTIAL: "certifier",
    SVC_PLUGIN_HARM_KEY: "hunter2",
    SVC_KEY_SECRET: "0123456789".repeat(4),
    SVC_DATABASE_URL: "postgres://svc:hunter3@db/svc",
    HTTPS_PROXY: "",
    TZ: "Europe/Berlin",
  };
  opened = await openPlugins({
    config: readConfig(environment),
    environment,
    builtin: builtinPlugins,
    directory,
    deps: {
      fetch: () => Promise.reject(new Error()),
      clock: { now: () => now },
      context: {} as Context,
      log: { debug: line, info: line, warn: line, error: line },
    },
  });
});
afterAll(async () => {
  opened.close();
  await rm(directory, { recursive: true, force: true });
});

const ask = (act: string, options: CallOptions = {}): Promise<Outcome<unknown>> =>
  callPlugin(
    opened.plugins.ofType("document")[0]!,
    "text",
    { document: { id: 1, name: "n", resourceType: "reference", resourceId: act } },
    options,
  );
const says = async (act: string, options?: CallOptions): Promise<string> => {
  const outcome = await ask(act, options);
  if (!outcome.ok) throw new Error(`${act}: ${outcome.detail}`);
  return (outcome.value as { text: string }).text;
};
/** A process that has not been reaped yet counts as gone. */
const isGone = (pid: string) => {
  if (!existsSync(`/proc/${pid}`)) return true;
  return /^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
};

describe("a call that harms its process harms only itself", () => {
  test.each(["loop", "hang", "prints"])(
    "%s: its process is killed when its time is up, while other calls succeed",
    async (act) => {
      const before = await says("pid");
      const harm = ask(act, { timeoutMilliseconds: 1500 });
      const others = await Promise.all([says("pid"), says("pid")]);
      expect(others).not.toContain(before);
      expect(await harm).toMatchObject({ ok: false, reason: "timeout" });
      await until("the end of its process", () => isGone(before));
      expect(await says("pid")).not.toBe(before);
    },
  );

  test.each([
    ["exit", "its process exited with code 0"],
    ["kill", "its process was ended by SIGKILL (it may allocate 512 MiB: SVC_PLUGIN_MEMORY)"],
    ["abort", "its process was ended by SIGABRT (it may allocate 512 MiB: SVC_PLUGIN_MEMORY)"],
  ])("%s", async (act, detail) => {
    const [harm, other] = await Promise.all([ask(act), says("pid")]);
    expect(harm).toMatchObject({ ok: false, reason: "failed", permanent: false });
    expect((harm as { detail: string }).detail).toBe(`harm failed: ${detail}`);
    expect(other).toMatch(/^\d+$/);
    expect(await says("pid")).toMatch(/^\d+$/);
  });

  test.each(["objects", "buffers"])("allocating without limit: %s", async (act) => {
    const [harm, other] = await Promise.all([ask(act), says("pid")]);
    expect(harm).toMatchObject({ ok: false, reason: "failed" });
    expect(other).toMatch(/^\d+$/);
  });

  test("the processes it started end with it", async () => {
    const file = join(directory, "spawned");
    expect(await ask(`spawns ${file}`, { timeoutMilliseconds: 500 })).toMatchObject({ reason: "timeout" });
    await until("the end of what it started", () => isGone(readFileSync(file, "utf8")));
  });

  test("five hanging calls delay a sixth only until their time is up", async () => {
    const hanging = [1, 2, 3, 4, 5].map(() => ask("hang", { timeoutMilliseconds: 500 }));
    expect(await says("pid")).toMatch(/^\d+$/);
    for (const outcome of await Promise.all(hanging)) expect(outcome).toMatchObject({ reason: "timeout" });
  });

  test("a cancelled call leaves its process to the next call", async () => {
    const before = await says("pid");
    const controller = new AbortController();
    const stopped = ask("stops", { signal: controller.signal });
    // Its signal reaches the process after the call: messages keep their order.
    controller.abort();
    expect(await stopped).toMatchObject({ reason: "aborted" });
    await until("its process", async () => (await says("pid")) === before);
  });
});

test("idle processes end after a while, except the oldest", async () => {
  const entry = join(directory, "node_modules", "svc-plugin-harm", "index.js");
  const { exported, opened } = await PluginPackage.load(
    { name: "harm", entry, directory, environment: process.env, memory: 512, spareMilliseconds: 1000 },
    AbortSignal.timeout(10_000),
  );
  try {
    type Text = (call: object) => Promise<{ text: string }>;
    const [harm] = exported as { create: (config: object, deps: object) => Promise<{ text: Text }> }[];
    const { text } = await harm!.create({ key: "k" }, { clock: { now: () => now } });
    const call = async (resourceId: string) => {
      const { signal } = new AbortController();
      return (await text({ document: { resourceId }, key: "k", signal })).text;
    };
    // The newest process becomes idle last, and still has time left when the one before ends.
    const file = join(directory, "newest");
    const [oldest, second] = await Promise.all([call("pid"), call("pid"), call(`slow ${file}`)]);
    const newest = readFileSync(file, "utf8").split(" ")[0]!;
    await until("the end of the others", () => isGone(second) && isGone(newest));
    expect(isGone(oldest)).toBe(false);
  } finally {
    opened.close();
  }
});

test("what a credential plugin says of its roles", () => {
  const [plugin] = opened.plugins.ofType("credential");
  expect(plugin).toMatchObject({ slug: "certifier", revocable: "expiry", publicKey: "ssh" });
  expect(plugin!.roleSettings!.map(({ key }) => key)).toEqual(["mount"]);
});

test("a package loads with the least memory that the configuration allows", async () => {
  const { minimum } = variables.pluginMemory.schema;
  const least = { directory, environment: process.env, memory: minimum! };
  const [loaded] = await loadPackages("svc-plugin-harm", least);
  loaded!.opened!.close();
  expect(loaded!.exported).toMatchObject([{ slug: "harm" }, { slug: "certifier" }]);
});

describe("what a call leaves running", () => {
  test("a timer that throws is logged without its message, and ends nothing", async () => {
    const before = await says("pid");
    expect(await says("later_throw")).toBe("answered");
    await until("its line", () => logged.some(({ message }) => message === "unhandled exception: Error"));
    expect(logged.find(({ message }) => message.startsWith("unhandled"))!.facts).toMatchObject({
      package: "svc-plugin-harm",
      frames: [expect.stringContaining("svc-plugin-harm/index.js")],
    });
    expect(JSON.stringify(logged)).not.toContain("hunter2");
    expect(await says("pid")).toBe(before);
  });

  test("a timer that exits during the next call: that call is retried with the same key", async () => {
    const file = join(directory, "calls");
    expect(await says("later_exit")).toBe("answered");
    expect(await says(`slow ${file}`, { key: "k7" })).toBe("answered");
    const lines = readFileSync(file, "utf8").trim().split("\n");
    expect(lines.map((line) => line.split(" ")[1])).toEqual(["k7", "k7"]);
    expect(new Set(lines).size).toBe(2);
  });

  test("a timer that loops: the next call gets another process", async () => {
    const before = await says("pid");
    const file = join(directory, "loops");
    expect(await says(`later_loop ${file}`)).toBe("answered");
    await until("the loop", () => existsSync(file));
    expect(await says("pid")).not.toBe(before);
    await until("the end of its process", () => isGone(before));
  });
});

describe("what passes between the processes", () => {
  test("output on stdout is discarded", async () => {
    expect(await says("print")).toBe("printed");
  });

  test("at most a hundred log lines a second", async () => {
    logged.length = 0;
    expect(await says("log")).toBe("logged");
    await until("the count of the others", () => logged.some(({ facts }) => "dropped" in facts));
    const lines = logged.filter(({ message }) => message === "line");
    expect(lines.length).toBeLessThanOrEqual(100);
    expect(lines[0]!.facts).toEqual({ package: "svc-plugin-harm", i: 0 });
    const dropped = logged.flatMap(({ facts }) => (typeof facts.dropped === "number" ? [facts.dropped] : []));
    expect(lines.length + dropped.reduce((sum, count) => sum + count, 0)).toBe(5000);
  });

  test("a log line without facts that are too long", async () => {
    logged.length = 0;
    expect(await says("long_log")).toBe("logged");
    await until("its line", () => logged.some(({ message }) => message === "long"));
    expect(logged.find(({ message }) => message === "long")!.facts).toEqual({ package: "svc-plugin-harm" });
  });

  test.each([
    ["function", "the answer: Expected"],
    ["ring", "it is not plain data"],
    ["nothing", "the answer: Expected"],
    ["long", "it is too large: 67 MiB as JSON, and 64 MiB is the limit"],
  ])("an answer that is not plain data: %s", async (act, fault) => {
    const detail = expect.stringContaining(fault);
    expect(await ask(act)).toMatchObject({ ok: false, reason: "invalid_answer", detail });
  });

  test("an error, masked", async () => {
    expect(await ask("throws")).toMatchObject({
      detail: "harm failed: no ***",
      permanent: true,
      retryAfter: 7,
    });
    expect(await ask("refuses")).toMatchObject({ detail: "harm failed: too long", field: "duration" });
    expect(await ask("library")).toMatchObject({
      detail: "harm failed: TypeError, E_HARM",
      permanent: false,
      frames: expect.arrayContaining([expect.stringContaining("svc-plugin-harm/index.js")]),
    });
  });

  test("the service's clock, the package's own fetch, and the key", async () => {
    expect(Math.abs(new Date(await says("clock")).getTime() - now.getTime())).toBeLessThan(10_000);
    await using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("hello") });
    expect(await says(`fetch http://127.0.0.1:${server.port}/`)).toBe("hello");
    expect(await says("key", { key: "k8" })).toBe("k8");
  });

  test("no secret of svc, and no configuration in an argument", async () => {
    const environment = JSON.parse(await says("environment")) as Record<string, string>;
    expect(environment).toMatchObject({ PATH: process.env.PATH, TZ: "Europe/Berlin" });
    const names = Object.keys(environment).filter((name) => /SVC|SECRET|DATABASE|POSTGRES/.test(name));
    expect(names).toEqual([]);
    expect(JSON.stringify(environment)).not.toContain("hunter");
    expect(await says("command")).toContain("host.ts");
    expect(await says("command")).not.toContain("hunter");
    expect(await says("forge")).toBe("true");
  });
});
