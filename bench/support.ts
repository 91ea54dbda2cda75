import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { openSql } from "../drizzle/client.ts";
import { startEmbeddedPostgres } from "../drizzle/embedded.ts";
import { upgrade } from "../drizzle/revision/upgrade.ts";

export const root = join(import.meta.dir, "..");

/** An error that the user can fix; only its message is shown. */
export class BenchError extends Error {}

export function describeMachine(): string {
  const model = cpus()[0]?.model.trim() ?? "unknown processor";
  const memory = (totalmem() / 2 ** 30).toFixed(1);
  return `machine  ${availableParallelism()} cores of ${model}, ${memory} GiB, ${process.platform} ${process.arch}`;
}

/** Reads a positive number from a variable that scales a bench. @throws BenchError if it is invalid */
export function numberFrom(variable: string, usual: number): number {
  const text = process.env[variable];
  const number = text === undefined ? usual : Number(text);
  if (Number.isFinite(number) && number > 0) return number;
  throw new BenchError(`${variable} must be a number above 0`);
}

/** The same for whole numbers. */
export function countFrom(variable: string, usual: number): number {
  const number = numberFrom(variable, usual);
  if (Number.isSafeInteger(number)) return number;
  throw new BenchError(`${variable} must be a whole number`);
}

/** Starts a part and stops it at the end in any case, even while it is still starting. */
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
 * Starts a new PostgreSQL as `svc up` does (crash-safe), except for `settings`, with its schema at head. It removes its
 * directory when it stops, even if we are killed.
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

/** Some settings require a restart of PostgreSQL, so this starts it once to apply them. */
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

/** The minimal environment of a program, so that variables of the shell do not affect a measurement. */
export function environment(more: Record<string, string> = {}): Record<string, string> {
  const { PATH = "", HOME = "/" } = process.env;
  return { PATH, HOME, TMPDIR: tmpdir(), ...more };
}

interface Program {
  command: string[];
  env?: Record<string, string>;
  /** Matches its output when it is ready; the first group is its address. */
  ready: RegExp;
}

export interface Started {
  address: string;
  pid: number;
}

/** Starts a server in a separate process. It ends when its standard input closes, or when it is stopped. */
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
    // Reads to the end, because a program whose pipe is full would block.
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
  "--no-orphans",
  "--no-env-file",
  "--no-install",
  `--config=${join(root, "bunfig.toml")}`,
  join(root, "cli/main.ts"),
];

/** What a server needs whose tokens the bench issues itself. */
export function serverEnvironment(databaseUrl: string, port: number) {
  return {
    SVC_DATABASE_URL: databaseUrl,
    SVC_KEY_SECRET: "a-secret-of-the-bench-of-thirty-two-characters",
    SVC_PUBLIC_URL: `http://127.0.0.1:${port}`,
    // Never contacted: no one signs in here.
    SVC_OIDC_ISSUER: "http://127.0.0.1:9",
  };
}

/** Starts our server as in production: `svc server start server/main:app`, with nothing disabled. */
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
 * Finds a program, or installs its Debian package (and others it needs) if we are root.
 * @throws BenchError with the command to run
 */
export function ensureProgram(name: string, others: readonly string[] = []): string {
  const found = Bun.which(name);
  if (found) return found;
  installPackages(name, [name, ...others]);
  const installed = Bun.which(name);
  if (!installed) throw new BenchError(`${name} could not be installed: apt-get install --yes ${name}`);
  return installed;
}

/** @throws BenchError with the command to run, if we are not root */
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

/** The first line of a program's output, for its version. */
export function firstLine(command: string[]): string {
  const { stdout, stderr } = Bun.spawnSync(command, { env: environment(), stdin: "ignore" });
  return (stdout.toString() || stderr.toString()).split("\n")[0]!.trim();
}

/** The smallest value such that at least `fraction` of all values do not exceed it (nearest rank). */
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
