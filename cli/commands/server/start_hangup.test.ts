import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { svcOnTerminal } from "../../../tests/support/cli/process.ts";
import { Load } from "../../../tests/support/http/load.ts";
import {
  appFolder,
  messagesIn,
  startOnDescriptor,
  startServing,
} from "../../../tests/support/http/serving.ts";
import { until } from "../../../tests/support/process/until.ts";

/** SIGHUP to a server without --workers. */

const folder = appFolder();
const inFolder = (name: string) => join(folder.path, name);
const names = ["one", "other"] as const;
afterAll(() => folder[Symbol.dispose]());
beforeAll(() => {
  for (const name of names) {
    const subject = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
    const files = ["-keyout", inFolder(`${name}.key`), "-out", inFolder(`${name}.pem`)];
    const made = Bun.spawnSync([
      "openssl",
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      ...files,
      ...subject,
    ]);
    expect(made.exitCode).toBe(0);
  }
  use("one");
});

/** Installs this certificate. */
function use(name: (typeof names)[number]) {
  for (const end of ["key", "pem"]) copyFileSync(inFolder(`${name}.${end}`), inFolder(`current.${end}`));
}

const tls = () => ["--ssl-keyfile", inFolder("current.key"), "--ssl-certfile", inFolder("current.pem")];

/** The name in the certificate of a new connection. */
async function subjectAt(port: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () =>
    resolve(String(socket.getPeerCertificate().subject.CN)),
  );
  socket.on("error", reject);
  return await promise.finally(() => socket.destroy());
}

const ca = () => names.map((name) => readFileSync(inFolder(`${name}.pem`), "utf8"));

describe.each(["mine:plain", "with_elysia:app"])("%s", (app) => {
  test("reloads the certificate without dropping or refusing requests", async () => {
    use("one");
    await using server = await startServing(folder.path, tls(), { app });
    expect(await subjectAt(server.port)).toBe("one");
    // Without a pause, the clients would fill the processors for as long as the slow request takes.
    const load = new Load({ port: server.port, clients: 8, pause: 2, tls: { ca: ca() } });
    for (const name of ["other", "one"] as const) {
      const slow = fetch(`https://127.0.0.1:${server.port}/slow?ms=1500`, {
        tls: { ca: ca() },
        keepalive: false,
      });
      await server.says("slow for 1500");
      use(name);
      process.kill(server.pid, "SIGHUP");
      await until("the new certificate", async () => (await subjectAt(server.port)) === name);
      const seen = load.answered;
      await until("answers by it", () => load.answered > seen + 20);
      expect(await (await slow).json()).toMatchObject({
        pid: server.pid,
        pathname: "/slow",
        address: "127.0.0.1",
      });
    }
    await load.end();
    expect(load.failures).toEqual([]);
    expect((await server.end()).code).toBe(0);
  });
});

test("keeps the old certificate if the new files are invalid, and logs the reason", async () => {
  use("one");
  await using server = await startServing(folder.path, tls());
  copyFileSync(inFolder("other.pem"), inFolder("current.pem"));
  process.kill(server.pid, "SIGHUP");
  await server.says("the old one stays in use");
  expect(server.said()).toContain("is not the key of the first certificate in");
  expect(await subjectAt(server.port)).toBe("one");
  use("other");
  process.kill(server.pid, "SIGHUP");
  await server.says("certificate reloaded");
  expect(await subjectAt(server.port)).toBe("other");
  expect((await server.end()).code).toBe(0);
});

test("--fd: the certificate is reloaded", async () => {
  use("one");
  await using server = await startOnDescriptor(folder.path, ["--fd", "3", ...tls()]);
  expect(await subjectAt(server.port)).toBe("one");
  use("other");
  process.kill(server.pid, "SIGHUP");
  await until("the new certificate", async () => (await subjectAt(server.port)) === "other");
  process.kill(server.pid, "SIGTERM");
  expect(await server.exited).toBe(0);
});

test("without TLS, it continues and suggests a restart", async () => {
  await using server = await startServing(folder.path, []);
  process.kill(server.pid, "SIGHUP");
  await server.says("SIGHUP changed nothing");
  expect((await server.ask()).pid).toBe(server.pid);
  const { code, stderr } = await server.end();
  expect(code).toBe(0);
  expect(messagesIn(stderr)).toEqual([
    `listening on http://127.0.0.1:${server.port}`,
    "SIGHUP changed nothing: there is no certificate. For new settings, restart the server, or start it with --workers",
  ]);
});

test("is ignored while the application is loading", async () => {
  const source = `
    process.kill(process.pid, "SIGHUP");
    await Bun.sleep(100);
    export { plain as app } from "./mine.ts";
  `;
  writeFileSync(inFolder("hangs_up.ts"), source);
  await using server = await startServing(folder.path, [], { app: "hangs_up:app" });
  expect((await server.end()).code).toBe(0);
});

test("a second server on the port of one with TLS is refused", async () => {
  use("one");
  await using server = await startServing(folder.path, tls());
  await expect(
    startServing(folder.path, [...tls(), "--port", String(server.port)], { port: false }),
  ).rejects.toThrow(`Port ${server.port} of 127.0.0.1 is in use`);
});

test.each([[[]], [["--workers", "1"]]])(
  "when the terminal is closed that it was started from, %p: it ends",
  async (args) => {
    const { child, exitCode, shows } = svcOnTerminal(
      ["server", "start", "mine:plain", "--port", "0", ...args],
      {},
      { cwd: folder.path },
    );
    // The chosen port, and not 0.
    await shows(/listening on http:\/\/127\.0\.0\.1:[1-9]/);
    child.terminal!.close();
    expect(await exitCode()).toBe(0);
  },
);
