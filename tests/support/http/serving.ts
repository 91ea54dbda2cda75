import { afterAll, beforeAll } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../../platform/free_port.ts";
import { type Finished, spawnSvc, testProgram } from "../cli/process.ts";
import { createTestDatabase, type TestDatabase } from "../database/database.ts";

const packageOfElysia = join(import.meta.dir, "../../../node_modules/elysia");

/** A small application. */
const plainSource = `
import { appendFileSync } from "node:fs";

export const answer = async (request, server) => {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === "/slow") {
    console.error("slow for " + searchParams.get("ms"));
    await Bun.sleep(Number(searchParams.get("ms")));
  }
  if (pathname === "/variable") return new Response(process.env[searchParams.get("name")] ?? "");
  if (pathname === "/noted") appendFileSync("noted", searchParams.get("id") + " " + process.pid + "\\n");
  if (pathname === "/read") return new Response(await request.text());
  // Blocks the event loop like for (;;), but does not use the processor.
  if (pathname === "/freeze") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  if (pathname === "/large") return new Response(new Uint8Array(32 * 1024 * 1024));
  if (pathname === "/elsewhere") return Response.redirect("http://127.0.0.1/other", 302);
  const address = server?.requestIP(request)?.address;
  server?.timeout(request, 30);
  const { length } = await request.text();
  return Response.json({ pid: process.pid, pathname, address, ...(length > 0 ? { length } : {}) });
};

export const plain = { fetch: answer };
export const number = 42;
`;

/** The same as an Elysia, with a WebSocket. Each process needs as long again to load it as to start. */
const elysiaSource = `
import { Elysia } from ${JSON.stringify(packageOfElysia)};
import { answer } from "./mine.ts";

export const app = new Elysia().ws("/echo", { message: (socket, message) => void socket.send(message) }).all("/*", ({ request, server }) => answer(request, server));
`;

/** Creates a folder with that application as `mine:plain` and `with_elysia:app`. */
export function appFolder(): { path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), "svc-serve-"));
  writeFileSync(join(path, "mine.ts"), plainSource);
  writeFileSync(join(path, "with_elysia.ts"), elysiaSource);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/**
 * Prepares the environment of `svc server start` for a whole file, with a new database. `env` has its variables, and `path`
 * is the folder it is started in, which also contains that application.
 */
export function useOwnServer(variables: Record<string, string> = {}) {
  const folder = appFolder();
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(async () => {
    folder[Symbol.dispose]();
    await database[Symbol.asyncDispose]();
  });
  return {
    path: folder.path,
    get env(): Record<string, string> {
      return {
        SVC_DATABASE_URL: database.url,
        SVC_OIDC_ISSUER: "http://127.0.0.1:1",
        SVC_KEY_SECRET: "a-secret-for-tests-of-thirty-two-characters",
        ...variables,
      };
    },
    start(args: readonly string[] = [], more: Record<string, string> = {}): Promise<Started> {
      return startServing(folder.path, args, { app: "server/main:app", env: { ...this.env, ...more } });
    },
  };
}

export interface Started {
  port: number;
  pid: number;
  /** Its output so far. */
  said(): string;
  says(text: string): Promise<void>;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** The application's answer, on a new connection each time. */
  ask(path?: string): Promise<{ pid: number; pathname: string; address?: string; length?: number }>;
  finished: Promise<Finished>;
  /** Sends the signal, and waits until the server has exited. */
  end(signal?: NodeJS.Signals): Promise<Finished>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts `svc server start` on a free port, and waits until it listens. @throws with its output if it exits */
export async function startServing(
  folder: string,
  args: readonly string[],
  { app = "mine:plain", env = {} as Record<string, string>, port = true, detached = false } = {},
): Promise<Started> {
  const start = async () => {
    const chosen = await freePort();
    const words = ["server", "start", app, ...(port ? ["--port", String(chosen)] : []), ...args];
    const program = spawnSvc(words, env, undefined, folder, detached);
    return {
      ...program,
      chosen,
      early: await Promise.race([program.says("listening on"), program.finished]),
    };
  };
  let started = await start();
  // Another test may take the port before the server does, and it may be the one that was chosen for mutual TLS.
  const taken = [`Port ${started.chosen} of 127.0.0.1 is in use`, "--mtls-port and --port are the same"];
  if (taken.some((reason) => started.early?.stderr.includes(reason))) started = await start();
  const { child, finished, said, says, chosen, early } = started;
  if (early) throw new Error(`svc server start ended: ${early.code} ${early.stderr}`);
  const ask = async (path: string, init: RequestInit = {}) =>
    await fetch(`http://127.0.0.1:${chosen}${path}`, { redirect: "manual", ...init });
  const end = async (signal: NodeJS.Signals = "SIGTERM") => {
    child.kill(signal);
    return await finished;
  };
  return {
    port: chosen,
    pid: child.pid,
    said,
    says,
    fetch: ask,
    finished,
    end,
    ask: async (path = "/") => await (await ask(path, { headers: { connection: "close" } })).json(),
    [Symbol.asyncDispose]: async () => void (await end("SIGKILL")),
  };
}

/** Runs `svc server start` with a listening socket as its descriptor 3, and waits for its first output. */
export async function startOnDescriptor(
  folder: string,
  args: readonly string[],
  { app = "mine:plain", variables = "" } = {},
): Promise<{ port: number; pid: number; said: string; exited: Promise<number> } & AsyncDisposable> {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  // Missing from Bun's types.
  const { fd, port } = listener as typeof listener & { fd: number };
  const line = [...testProgram, "server", "start", app, ...args].join(" ");
  const child = Bun.spawn(["sh", "-c", `${variables} exec ${line}`], {
    cwd: folder,
    env: { PATH: process.env.PATH },
    stdio: ["ignore", "ignore", "pipe", fd],
  });
  const { value } = await child.stderr.getReader().read();
  // Otherwise it would accept some of the connections.
  listener.stop();
  return {
    port,
    pid: child.pid,
    said: new TextDecoder().decode(value),
    exited: child.exited,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/** The messages of a server's log, without time and level. */
export function messagesIn(stderr: string): string[] {
  return stderr
    .split("\n")
    .filter(Boolean)
    .map((line) => (line.startsWith("{") ? JSON.parse(line).msg : line));
}
