import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { openSql } from "../drizzle/client.ts";
import { startEmbeddedPostgres } from "../drizzle/embedded.ts";
import { upgrade } from "../drizzle/revision/upgrade.ts";

export const root = join(import.meta.dir, "..");

/** What a person can do something about; its message is all that is shown. */
export class BenchError extends Error {}

export function describeMachine(): string {
  const model = cpus()[0]?.model.trim() ?? "unknown processor";
  const memory = (totalmem() / 2 ** 30).toFixed(1);
  return `machine  ${availableParallelism()} cores of ${model}, ${memory} GiB, ${process.platform} ${process.arch}`;
}

/** A number above 0 by which a variable makes a bench shorter or longer. @throws BenchError when it is none */
export function numberFrom(variable: string, usual: number): number {
  const text = process.env[variable];
  const number = text === undefined ? usual : Number(text);
  if (Number.isFinite(number) && number > 0) return number;
  throw new BenchError(`${variable} is no number above 0`);
}

/** The same of what there can only be whole ones of. */
export function countFrom(variable: string, usual: number): number {
  const number = numberFrom(variable, usual);
  if (Number.isSafeInteger(number)) return number;
  throw new BenchError(`${variable} is no whole number`);
}

/** Starts a part that is stopped at the end, whatever the end is; also one that is still being started then. */
export async function keep<T>(
  parts: AsyncDisposableStack,
  start: () => Promise<T>,
  stop: (part: T) => void | Promise<void>,
): Promise<T> {
  if (parts.disposed) throw new BenchError("stopped");
  const starting = start();
  parts.defer(() => starting.then(stop, () => {}));
  return starting;
}

/** A directory that is removed at the end. */
export function temporaryDirectory(parts: AsyncDisposableStack): Promise<string> {
  return keep(
    parts,
    () => mkdtemp(join(tmpdir(), "svc-bench-")),
    (directory) => rm(directory, { recursive: true, force: true }),
  );
}

/**
 * A new PostgreSQL as `svc up` runs it (crash-safe), but for `settings`; its schema at head. It removes the directory
 * with itself, also when we are killed.
 */
export async function startDatabase(
  parts: AsyncDisposableStack,
  directory: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<string> {
  await applySettings(directory, settings);
  const { url } = await keep(
    parts,
    () => startEmbeddedPostgres({ directory, temporary: true }),
    (postgres) => postgres.stop(),
  );
  await upgrade({ url });
  return url;
}

/** Some settings are read only when PostgreSQL starts: it is started once for these. */
async function applySettings(directory: string, settings: Readonly<Record<string, string>>): Promise<void> {
  if (Object.keys(settings).length === 0) return;
  const { url, stop } = await startEmbeddedPostgres({ directory });
  const sql = openSql(url, { max: 1 });
  try {
    for (const [name, value] of Object.entries(settings))
      await sql.unsafe(`alter system set ${name} = '${value}'`);
  } finally {
    await sql.end({ timeout: 5 });
    await stop();
  }
}

export async function postgresVersion(url: string): Promise<string> {
  const sql = openSql(url, { max: 1 });
  try {
    const [row] = await sql`show server_version`;
    return row?.server_version;
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** What every program needs to run: what is set in the shell must not decide about a measurement. */
export function environment(more: Record<string, string> = {}): Record<string, string> {
  const { PATH = "", HOME = "/" } = process.env;
  return { PATH, HOME, TMPDIR: tmpdir(), ...more };
}

interface Program {
  command: string[];
  env?: Record<string, string>;
  /** Matches what it writes when it answers; the first group is its address. */
  ready: RegExp;
}

export interface Started {
  address: string;
  pid: number;
}

/** Starts a server as a process of its own. It ends when its standard input does, or when it is told to. */
export async function startProgram(
  parts: AsyncDisposableStack,
  cwd: string,
  { command, env, ready }: Program,
): Promise<Started> {
  const child = await keep(
    parts,
    async () => Bun.spawn(command, { cwd, env: environment(env), stdio: ["pipe", "pipe", "pipe"] }),
    async (started) => {
      started.kill("SIGTERM");
      const timer = setTimeout(() => started.kill("SIGKILL"), 8000);
      await started.exited;
      clearTimeout(timer);
    },
  );
  return { address: await awaitAddress(child, ready), pid: child.pid };
}

function awaitAddress(child: Bun.Subprocess<"pipe", "pipe", "pipe">, ready: RegExp): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let output = "";
  const follow = async (stream: ReadableStream<Uint8Array>) => {
    // Read to the end: a program whose pipe is full stands still.
    for await (const chunk of stream) {
      output = (output + Buffer.from(chunk).toString()).slice(-10_000);
      const address = output.match(ready)?.[1];
      if (address) resolve(address);
    }
  };
  Promise.all([follow(child.stdout), follow(child.stderr)]).then(() =>
    reject(new BenchError(`a part ended early: ${output.trim()}`)),
  );
  return promise;
}

/** `svc` from the source tree, as bin/svc.mjs runs it. */
export const svcFromSource = [
  process.execPath,
  ...["--no-orphans", "--no-env-file", "--no-install", `--config=${join(root, "bunfig.toml")}`],
  join(root, "cli/main.ts"),
];

/** Our server as in production: `svc server start server/main:app`, with nothing switched off. */
export function startServer(
  parts: AsyncDisposableStack,
  cwd: string,
  port: number,
  env: Record<string, string>,
  workers = 1,
): Promise<Started> {
  const words = ["server", "start", "server/main:app", "--port", String(port), "--workers", String(workers)];
  return startProgram(parts, cwd, {
    command: [...svcFromSource, ...words],
    env: { SVC_KEY_SECRET: "a-secret-of-the-bench-of-thirty-two-characters", ...env },
    ready: /listening on (http:[^"\s]+)/,
  });
}

/**
 * Finds a program of Debian's, or installs it, with what else it needs, when we are root.
 * @throws BenchError that says what to type
 */
export function ensureProgram(name: string, others: readonly string[] = []): string {
  const found = Bun.which(name);
  if (found) return found;
  installPackages(name, [name, ...others]);
  const installed = Bun.which(name);
  if (!installed) throw new BenchError(`${name} could not be installed: apt-get install --yes ${name}`);
  return installed;
}

/** @throws BenchError that says what to type, when we are not root */
export function installPackages(what: string, packages: readonly string[]): void {
  const apt = Bun.which("apt-get");
  if (!apt || process.getuid?.() !== 0)
    throw new BenchError(`${what} is missing: sudo apt-get install --yes ${packages.join(" ")}`);
  console.log(`installing ${what}`);
  const env = environment({ DEBIAN_FRONTEND: "noninteractive" });
  for (const words of [
    ["update", "--quiet=2"],
    ["install", "--yes", "--quiet=2", "--no-install-recommends", ...packages],
  ])
    Bun.spawnSync([apt, ...words], { env, stdio: ["ignore", "ignore", "inherit"] });
}

/** The first line that a program writes, for its version. */
export function firstLine(command: string[]): string {
  const { stdout, stderr } = Bun.spawnSync(command, { env: environment(), stdin: "ignore" });
  return (stdout.toString() || stderr.toString()).split("\n")[0]!.trim();
}

/** The smallest value that at least `fraction` of all are not above (nearest rank). */
export function quantile(values: number[], fraction: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)]!;
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle - 1)]!) / 2;
}

export function verdict(met: boolean): string {
  return met ? "met" : "MISSED";
}
