import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sql } from "../../drizzle/client.ts";
import type { Environment } from "../config.ts";
import { InvalidInput, Unavailable } from "../errors.ts";
import { fileError } from "./file_error.ts";

export interface ToolRun {
  command: readonly string[];
  /** All of it: nothing is inherited. */
  env: Environment;
  signal?: AbortSignal;
  /** Told each line of standard error that is no error. */
  log?: (line: string) => void;
}

/** A running tool: its output must be read to the end, then `done` tells how it went. */
export interface RunningTool {
  output: ReadableStream<Uint8Array>;
  /** @throws Unavailable with the tool's own reason */
  done: Promise<void>;
  kill(): void;
}

export function startTool({ command, env, signal, log }: ToolRun): RunningTool {
  signal?.throwIfAborted();
  const child = Bun.spawn([...command], {
    env: { ...env, LC_ALL: "C" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const kill = () => child.kill("SIGTERM");
  signal?.addEventListener("abort", kill, { once: true });
  const done = (async () => {
    const faults: string[] = [];
    for await (const line of linesOf(child.stderr)) {
      if (/error:|FATAL:|ERROR:|could not/.test(line)) faults.push(line);
      else log?.(line);
    }
    await child.exited;
    signal?.removeEventListener("abort", kill);
    signal?.throwIfAborted();
    if (child.exitCode !== 0) throw toolError(command[0]!, faults, child.signalCode);
  })();
  done.catch(() => {});
  return { output: child.stdout, done, kill };
}

/** Runs a tool whose output is short. */
export async function runTool(run: ToolRun): Promise<string> {
  const tool = startTool(run);
  const text = await new Response(tool.output).text();
  await tool.done;
  return text;
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
  if (rest !== "") yield rest;
}

/** The first thing that went wrong; what follows it are its consequences. */
function toolError(tool: string, faults: readonly string[], killedBy: string | number | null): Error {
  const name = tool.slice(tool.lastIndexOf("/") + 1);
  const [first = killedBy ? `was ended by ${killedBy}` : "failed without a word"] = faults;
  const reason = first.replace(/^\S+: (error|fatal): /, "").replace(/^query failed: /, "");
  const all = faults.join("\n");
  if (/No space left on device|Disk quota exceeded/.test(all)) return withCode("ENOSPC", all);
  if (/File too large/.test(all) || killedBy === "SIGXFSZ") return withCode("EFBIG", all);
  const [, table] = /permission denied for (?:table|relation|sequence) (\S+)/.exec(all) ?? [];
  if (table) return new Unavailable(`This user may not read ${table}: dump as the owner of the tables`);
  if (/unsupported version/.test(all)) {
    return new InvalidInput("file", "The backup was made by a newer pg_dump than the tools here can read");
  }
  if (name === "pg_restore" && /input file|end of file|uncompress|decompress|corrupt/.test(all)) {
    return new InvalidInput("file", `The backup is truncated or damaged (pg_restore: ${reason})`);
  }
  return new Unavailable(`${name}: ${reason}`);
}

/** A tool's refusal, as the file system would have told us itself: whoever knows the path words it (fileError). */
function withCode(code: string, cause: string): Error {
  return Object.assign(new Error(cause), { code });
}

/** What of our own environment the tools get. */
export function toolEnvironment({ PATH, HOME }: Environment): Environment {
  return { PATH, HOME };
}

/**
 * Where the tools find the server: the same place, user and encryption that our own connection has, and a file with the
 * password. Nothing of it is an argument, which everyone on the machine could read.
 */
export function connectionEnvironment({ options }: Sql, passwordFile: string): Environment {
  const { host, port, user, database, ssl, target_session_attrs } = options as unknown as {
    host: string[];
    port: number[];
    user: string;
    database: string;
    ssl: unknown;
    target_session_attrs: string | null;
  };
  return {
    PGHOST: host.join(","),
    PGPORT: port.join(","),
    PGUSER: user,
    PGDATABASE: database,
    PGPASSFILE: passwordFile,
    PGAPPNAME: "svc database dump",
    PGCONNECT_TIMEOUT: "10",
    ...(target_session_attrs ? { PGTARGETSESSIONATTRS: target_session_attrs } : {}),
    // postgres.js has libpq's words for it. With its `true`, which verifies, our own connection has verified already.
    ...(ssl ? { PGSSLMODE: typeof ssl === "string" && !ssl.startsWith("verify") ? ssl : "require" } : {}),
  };
}

/**
 * Lends the password as a file that only we can read, in a directory that only we can enter. `forget` removes it
 * before the end: the tools read it once, when they connect.
 */
export async function withPasswordFile<T>(
  { options }: Sql,
  use: (path: string, forget: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const password = String((options as { pass?: unknown }).pass ?? "");
  const refused = (error: unknown) => {
    throw fileError(error, tmpdir());
  };
  const directory = await mkdtemp(join(tmpdir(), "svc-password-")).catch(refused);
  const forget = () => rm(directory, { recursive: true, force: true });
  try {
    const path = join(directory, "pgpass");
    // libpq: fields are host, port, database, user, password; `:` and `\` are escaped.
    const line = `*:*:*:*:${password.replace(/[\\:]/g, "\\$&")}\n`;
    await writeFile(path, line, { mode: 0o600 }).catch(refused);
    return await use(path, forget);
  } finally {
    await forget();
  }
}
