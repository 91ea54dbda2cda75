import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Finished, spawnSvc } from "../../cli/testing/process.ts";
import { chooseFreePort } from "../../cli/up/ports.ts";

const elysia = join(import.meta.dir, "../../node_modules/elysia");

/** The same small application, once as an object with `fetch`, once as an Elysia. */
const source = `
import { Elysia } from ${JSON.stringify(elysia)};

const answer = async (request, server) => {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === "/slow") await Bun.sleep(Number(searchParams.get("ms")));
  if (pathname === "/variable") return new Response(process.env[searchParams.get("name")] ?? "");
  if (pathname === "/elsewhere") return Response.redirect("http://127.0.0.1/other", 302);
  const address = server?.requestIP(request)?.address;
  server?.timeout(request, 30);
  const { length } = await request.text();
  return Response.json({ pid: process.pid, pathname, address, ...(length > 0 ? { length } : {}) });
};

export const plain = { fetch: answer };
export const elysia = new Elysia().all("/*", ({ request, server }) => answer(request, server));
export const number = 42;
`;

/** A folder with that application as `mine.ts`. */
export function appFolder(): { path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), "svc-serve-"));
  writeFileSync(join(path, "mine.ts"), source);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

export interface Started {
  port: number;
  pid: number;
  says(text: string): Promise<void>;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** What the application answers, a new connection each time. */
  ask(path?: string): Promise<{ pid: number; pathname: string; address?: string; length?: number }>;
  /** Sends the signal, and waits for the end. */
  end(signal?: NodeJS.Signals): Promise<Finished>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** `svc server start` on a free port, as soon as it listens. @throws with what it said when it ends instead */
export async function startServing(
  folder: string,
  args: readonly string[],
  { app = "mine:plain", env = {} as Record<string, string>, port = true } = {},
): Promise<Started> {
  const chosen = await chooseFreePort("127.0.0.1");
  const place = port ? ["--port", String(chosen)] : [];
  const { child, finished, says } = spawnSvc(
    ["server", "start", app, ...place, ...args],
    env,
    undefined,
    folder,
  );
  const early = await Promise.race([says("listening on"), finished]);
  if (early) throw new Error(`svc server start ended: ${early.code} ${early.stderr}`);
  const ask = async (path: string, init: RequestInit = {}) =>
    await fetch(`http://127.0.0.1:${chosen}${path}`, { redirect: "manual", ...init });
  const end = async (signal: NodeJS.Signals = "SIGTERM") => {
    child.kill(signal);
    return await finished;
  };
  return {
    ...{ port: chosen, pid: child.pid, says, fetch: ask, end },
    ask: async (path = "/") => await (await ask(path, { headers: { connection: "close" } })).json(),
    [Symbol.asyncDispose]: async () => void (await end("SIGKILL")),
  };
}

/** `svc server start` by a shell that hands it a listening socket as its descriptor 3, as soon as it has said a word. */
export async function startOnDescriptor(
  folder: string,
  args: readonly string[],
  { app = "mine:plain", variables = "" } = {},
): Promise<{ port: number; pid: number; said: string; exited: Promise<number> } & AsyncDisposable> {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  // Bun's types keep quiet about it.
  const { fd, port } = listener as typeof listener & { fd: number };
  const main = join(import.meta.dir, "../../cli/main.ts");
  const line = [process.execPath, main, "server", "start", app, ...args].join(" ");
  const child = Bun.spawn(["sh", "-c", `${variables} exec ${line}`], {
    ...{ cwd: folder, env: { PATH: process.env.PATH }, stdio: ["ignore", "ignore", "pipe", fd] },
  });
  const { value } = await child.stderr.getReader().read();
  // It would go on to accept some of the connections.
  listener.stop();
  return {
    ...{ port, pid: child.pid, said: new TextDecoder().decode(value), exited: child.exited },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
