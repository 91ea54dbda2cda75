import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runHere } from "../../../tests/support/cli/io.ts";
import { svc } from "../../../tests/support/cli/process.ts";
import { appFolder, messagesIn, startServing } from "../../../tests/support/http/serving.ts";

const folder = appFolder();
afterAll(() => folder[Symbol.dispose]());
const start = (args: readonly string[] = [], options = {}) => startServing(folder.path, args, options);

describe("APP", () => {
  test.each([`${folder.path}/mine:plain`, "pkg:app", "@mine/pkg/deep:app"])(
    "%s is served, and SIGTERM ends it with 0",
    async (app) => {
      const index = `export { plain as app } from ${JSON.stringify(join(folder.path, "mine.ts"))};`;
      for (const [name, file] of [
        ["pkg", "index.js"],
        ["@mine/pkg", "deep.js"],
      ] as const) {
        mkdirSync(join(folder.path, "node_modules", name), { recursive: true });
        writeFileSync(join(folder.path, "node_modules", name, file), index);
      }
      await using server = await start([], { app });
      expect(await server.ask("/a")).toEqual({ pid: server.pid, pathname: "/a", address: "127.0.0.1" });
      const { code, stdout, stderr } = await server.end();
      expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
      expect(messagesIn(stderr)).toEqual([`listening on http://127.0.0.1:${server.port}`]);
    },
  );

  test.each([
    ["nowhere:app", "There is no module nowhere in the working directory, nor such a package"],
    ["mine:missing", 'Module mine has no "missing"'],
    ["mine:number", '"number" of mine is not an application: it has no fetch(request)'],
    ["broken:app", /^svc: Module broken cannot be loaded: \/\S+\/broken\.ts:2:\d+: \S.*\n$/],
    ["below:app", /^svc: Module below cannot be loaded: \/\S+\/broken\.ts:2:\d+: \S.*\n$/],
    [
      "throws:app",
      /^svc: Module throws cannot be loaded \(TypeError at \/\S+\/throws\.ts:1:1\); SVC_DEBUG=1 shows all of it\n$/,
    ],
  ])("%s: one clear line", async (app, line) => {
    writeFileSync(join(folder.path, "broken.ts"), "export const a = 1;\nexport const app = (;\n");
    writeFileSync(join(folder.path, "below.ts"), 'export * from "./broken.ts";');
    writeFileSync(join(folder.path, "throws.ts"), "undefined.app;");
    const { code, stderr } = await svc(["server", "start", app], {}, folder.path);
    expect(code).toBe(1);
    if (typeof line === "string") expect(stderr).toBe(`svc: ${line}\n`);
    else expect(stderr).toMatch(line);
  });
});

describe("invalid command lines", () => {
  test.each([
    ["--uds a --port 1", "--uds and --port exclude each other"],
    ["--uds a --fd 3", "--uds and --fd exclude each other"],
    [
      "--uds a --port 1 --host ::1 --mtls-port 2 --mtls-keyfile a --mtls-certfile a",
      "--uds and --port exclude each other",
    ],
    ["--fd 3 --host ::1", "--fd and --host exclude each other"],
    [
      "--header Content-Length:5",
      "--header: Content-Length differs between responses, and cannot be set for all",
    ],
    [
      "--header transfer-encoding:chunked",
      "--header: transfer-encoding differs between responses, and cannot be set for all",
    ],
    [
      "--header Connection:keep-alive",
      "--header: Connection differs between responses, and cannot be set for all",
    ],
    ["--uds-mode 600", "--uds-mode requires --uds"],
    ["--uds a --uds-mode 9", '--uds-mode: "9" is not a mode such as 660'],
    ["--uds a --uds-mode 1660", '--uds-mode: "1660" is not a mode such as 660'],
    ["--reload --workers 2", "--reload and --workers exclude each other"],
    ["--uds a --workers 2", "--uds and --workers exclude each other: processes cannot share a Unix socket"],
    ["--uds a --reload", "--uds and --reload exclude each other: processes cannot share a Unix socket"],
    ["--reload-dir a", "--reload-dir requires --reload"],
    ["--ssl-keyfile a", "--ssl-keyfile and --ssl-certfile require each other"],
    ["--ssl-certfile a", "--ssl-keyfile and --ssl-certfile require each other"],
    ["--mtls-keyfile a", "--mtls-keyfile and --mtls-certfile require each other"],
    ["--mtls-keyfile a --mtls-certfile b", "--mtls-certfile requires --mtls-port"],
    [
      "--mtls-port 8443",
      "--mtls-port requires --ssl-keyfile and --ssl-certfile, or --mtls-keyfile and --mtls-certfile",
    ],
    ["--mtls-port 0", "--mtls-port 0: clients would not know the address"],
    ["--ssl-keyfile a --ssl-certfile b --port 1 --mtls-port 1", "--mtls-port and --port are the same"],
    ["--ssl-ca-certs a", "--ssl-ca-certs requires --ssl-keyfile and --ssl-certfile"],
    ["--fd 1000001", '--fd: "1000001" is not a whole number from 0 to 1000000'],
    ["--fd 1e1", '--fd: "1e1" is not a whole number from 0 to 1000000'],
    ["--workers 257", '--workers: "257" is not a whole number from 1 to 256'],
    ["--timeout-keep-alive 0", '--timeout-keep-alive: "0" is not a whole number from 1 to 255'],
    [
      "--timeout-graceful-shutdown 3601",
      '--timeout-graceful-shutdown: "3601" is not a whole number from 0 to 3600',
    ],
    ["--workers 0", '--workers: "0" is not a whole number from 1 to 256'],
    ["--timeout-keep-alive 256", '--timeout-keep-alive: "256" is not a whole number from 1 to 255'],
    ["--port 65536", '--port: "65536" is not a port (0 to 65535)'],
    ["--root-path a", '--root-path: "a" is not a path such as /svc'],
    ["--root-path /a/../b", '--root-path: "/a/../b" is not a path such as /svc'],
    [`--uds ${"x".repeat(108)}`, "--uds: the path of a socket has at most 107 bytes"],
    ["--header hunter2", "--header: expected <name>:<value>"],
  ])("%s", async (line, fault) => {
    const { code, stderr } = await runHere(["server", "start", "mine:plain", ...line.split(" ")]);
    expect({ code, first: stderr.split("\n")[0] }).toEqual({ code: 2, first: `svc: ${fault}` });
  });

  test("a port in use, and a missing file, are named", async () => {
    await using taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    for (const [args, line] of [
      [
        ["--port", `${taken.port}`],
        `Port ${taken.port} of 127.0.0.1 is in use: choose another one with --port`,
      ],
      [
        ["--ssl-keyfile", "no", "--ssl-certfile", "no"],
        "--ssl-keyfile: cannot read no: the file does not exist",
      ],
      [["--env-file", "no"], "--env-file: there is no no"],
      [["--fd", "77"], "--fd 77 is not a socket"],
      [["--fd", "77", "--workers", "2"], "--fd 77 is not a socket"],
      [["--reload", "--reload-dir", "no"], "--reload-dir: no such directory: no"],
      [["--workers", "2", "--host", "192.0.2.1"], "192.0.2.1 is not an address of this machine"],
      [["--host", "192.0.2.1"], "192.0.2.1 is not an address of this machine"],
      [["--host", "nowhere.invalid"], "nowhere.invalid is not an address of this machine"],
      [["--uds", "mine.ts"], "--uds: mine.ts exists and is not a socket"],
    ] as const) {
      const { code, stderr } = await svc(["server", "start", "mine:plain", ...args], {}, folder.path);
      expect({ code, stderr }).toEqual({ code: 1, stderr: `svc: ${line}\n` });
    }
  });

  test("a port in use is also reported with workers, which could share it", async () => {
    await using other = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      reusePort: true,
      fetch: () => new Response(),
    });
    const args = ["server", "start", "mine:plain", "--port", `${other.port}`, "--workers", "2"];
    const { code, stderr } = await svc(args, {}, folder.path);
    expect(code).toBe(1);
    expect(stderr).toContain(`Port ${other.port} of 127.0.0.1 is in use`);
  });
});
