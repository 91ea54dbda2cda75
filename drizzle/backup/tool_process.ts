import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InvalidInput, Unavailable } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import type { Sql } from "../client.ts";
import type { Encryption } from "../connection/address.ts";
import { commandIn, engineEnvironment, type ServerAddress } from "./container.ts";
import { fileError } from "./file_error.ts";
import type { Tool } from "./tools.ts";

interface ToolRun {
  tool: Tool;
  args: readonly string[];
  /** A file of ours that it reads. */
  reads?: string;
  /** A file of ours that it writes; without one, it writes to `output`. */
  writes?: string;
  /** Our own environment; the tool gets only what it needs to run. */
  env: Environment;
  /** Additional variables (PGHOST, ...), because anyone on the machine could read arguments. */
  variables?: Environment;
  signal?: AbortSignal;
  /** Called with each line of standard error that is not an error. */
  log?: (line: string) => void;
}

/** A running tool. Its output must be read to the end before `done` settles. */
interface RunningTool {
  output: ReadableStream<Uint8Array>;
  /** @throws Unavailable with the tool's error */
  done: Promise<void>;
  kill(): void;
}

export function startTool(run: ToolRun): RunningTool {
  const { signal, log } = run;
  signal?.throwIfAborted();
  const { command, env, stdin, stdout } = spawnOf(run);
  const child = Bun.spawn(command, { env: { ...env, LC_ALL: "C" }, stdio: [stdin, stdout, "pipe"] });
  const kill = () => {
    child.kill("SIGTERM");
    if (typeof child.stdin === "object") void child.stdin.end();
  };
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
    if (child.exitCode !== 0) throw toolError(nameOf(run.tool), faults, child.signalCode);
  })();
  done.catch(() => {});
  const output = child.stdout instanceof ReadableStream ? child.stdout : new Blob().stream();
  return { output, done, kill };
}

/** How to start the tool. One in a container cannot see our files, so it uses standard input and output. */
function spawnOf({ tool, args, reads, writes, env, variables = {} }: ToolRun) {
  if (!tool.container) {
    const files = [...(writes ? [`--file=${writes}`] : []), ...(reads ? [reads] : [])];
    return {
      command: [tool.path, ...args, ...files],
      env: { ...toolEnvironment(env), ...variables },
      stdin: "ignore" as const,
      stdout: "pipe" as const,
    };
  }
  const { name, container } = tool;
  const start = commandIn(container, name, {
    names: Object.keys(variables),
    readsInput: reads !== undefined,
  });
  return {
    command: [...start, ...args],
    env: { ...engineEnvironment(env), ...variables },
    stdin: reads ? Bun.file(reads) : ("pipe" as const),
    stdout: writes ? Bun.file(writes) : ("pipe" as const),
  };
}

function nameOf(tool: Tool): string {
  return tool.container ? tool.name : tool.path.slice(tool.path.lastIndexOf("/") + 1);
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

/** Reports the first error; later ones are usually its consequences. */
function toolError(name: string, faults: readonly string[], killedBy: string | number | null): Error {
  const [first = killedBy ? endedBy(killedBy) : "it failed without a message"] = faults;
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

/** Describes the end of a tool that could not report it itself. */
function endedBy(signal: string | number): string {
  if (signal === "SIGKILL") return "it was killed, perhaps for lack of memory. Run it again with more memory";
  if (["SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT"].includes(String(signal))) {
    return "it crashed. Install the current minor release of PostgreSQL's client tools, then run it again";
  }
  return `it was stopped by another process (${signal}). Run it again`;
}

/** Gives a tool's error the code of a file system error, so that fileError can describe it with the path. */
function withCode(code: string, cause: string): Error {
  return Object.assign(new Error(cause), { code });
}

/** The part of our environment that the tools get. */
function toolEnvironment({ PATH, HOME }: Environment): Environment {
  return { PATH, HOME };
}

/** The server that our own connection uses. */
export function serverOf({ options }: Sql): ServerAddress {
  const { host, port } = options as unknown as { host: string[]; port: number[] };
  return { host: host.join(","), port: port[0]! };
}

/**
 * Where a tool finds the server: the same place, user and encryption as our own connection, and a file with the
 * password. None of this is passed as an argument, which anyone on the machine could read. Inside the server's
 * container, the server is local and the file does not exist.
 */
export function connectionVariables({ options }: Sql, tool: Tool, passwordFile: string): Environment {
  const { host, port, user, database, pass, ssl, target_session_attrs } = options as unknown as {
    host: string[];
    port: number[];
    user: string;
    database: string;
    pass: unknown;
    ssl: unknown;
    target_session_attrs: string | null;
  };
  const common = {
    PGUSER: user,
    PGDATABASE: database,
    PGAPPNAME: "svc database dump",
    PGCONNECT_TIMEOUT: "10",
  };
  if (tool.container)
    return {
      ...common,
      PGHOST: "127.0.0.1",
      PGPORT: String(tool.container.port),
      PGPASSWORD: String(pass ?? ""),
    };
  return {
    ...common,
    PGHOST: host.join(","),
    PGPORT: port.join(","),
    PGPASSFILE: passwordFile,
    ...(target_session_attrs ? { PGTARGETSESSIONATTRS: target_session_attrs } : {}),
    ...encryptionOf(ssl),
  };
}

function encryptionOf(ssl: unknown): Environment {
  if (!ssl) return {};
  if (typeof ssl === "object" && "variables" in ssl) return (ssl as Encryption).variables;
  // postgres.js uses libpq's terms. Its `true` verifies the server, which our own connection has already done.
  return { PGSSLMODE: typeof ssl === "string" && !ssl.startsWith("verify") ? ssl : "require" };
}

/**
 * Provides the password in a file that only we can read, in a directory that only we can enter. `forget` removes it
 * early: the tools read it once, when they connect.
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
