import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, existsSync, openSync } from "node:fs";
import { chown, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import postgres from "postgres";
import { freePort } from "../platform/free_port.ts";
import { type Account, assertReachable, chooseAccount, handOver } from "./embedded/account.ts";
import { type Binaries, findBinaries } from "./embedded/binaries.ts";
import { EmbeddedPostgresError } from "./embedded/error.ts";
import { stopLeftover, waitUntilReady } from "./embedded/postmaster.ts";

export { EmbeddedPostgresError };

interface EmbeddedPostgresOptions {
  /** Kept between starts: `data/`, `password`, `postgres.log`. */
  directory: string;
  /** 0 or undefined: any free port but `reservedPorts`. */
  port?: number;
  /** Free ports that are going to be used by something else. */
  reservedPorts?: readonly number[];
  /** false: fast, but not crash-safe, and its passwords are easy to guess from their hashes. For tests. */
  durable?: boolean;
  /** Remove `directory` when it stops, even if this process was killed. For tests. */
  temporary?: boolean;
  /** Programs of another installation than npm's; `directory` must then contain one of its clusters. For tests. */
  binaries?: Binaries;
  /** Called for slow steps: only the first start creates a cluster. */
  log?: (line: string) => void;
}

export interface EmbeddedPostgres {
  /** The superuser's address of the database `svc`, including the password. */
  url: string;
  port: number;
  /** PostgreSQL's own log. */
  logFile: string;
  /** Settles when PostgreSQL has ended for any reason. */
  exited: Promise<void>;
  stop(): Promise<void>;
}

const user = "svc";
const database = "svc";
const stopSeconds = 20;
const largestLog = 10_000_000;

/**
 * Starts a private PostgreSQL server on 127.0.0.1, with the binaries that npm installed. (The library's own class can
 * start one as root only if there is a user `postgres`, writes the password to /tmp and leaves a server behind when it
 * is killed.) PostgreSQL ends when this process ends, in whatever way.
 *
 * @throws EmbeddedPostgresError, one line with the fix
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const directory = resolve(options.directory);
  const data = join(directory, "data");
  const binaries = options.binaries ?? (await findBinaries());
  const account = chooseAccount();
  // Only the last directory is restricted: the account may be another user, who has to pass through those above.
  await mkdir(dirname(directory), { recursive: true });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await handOver(directory, account);
  assertReachable(account, [binaries.postgres, directory]);
  await stopLeftover(data);
  const password = await readOrMakePassword(directory, account, existsSync(data));
  if (!existsSync(data)) {
    options.log?.("creating the database cluster");
    await initialise(binaries, account, directory, options.durable ?? true);
  }
  const logFile = join(directory, "postgres.log");
  const logSize = (await stat(logFile).catch(() => undefined))?.size ?? 0;
  if (logSize > largestLog) await rename(logFile, `${logFile}.1`);
  const server = await startServer(binaries, account, { ...options, directory, data, logFile });
  const url = (name: string) => `postgres://${user}:${password}@127.0.0.1:${server.port}/${name}`;
  await createDatabase(url("postgres")).catch(async (cause) => {
    await server.stop();
    const message = `The embedded PostgreSQL in ${directory} refused our connection: see ${logFile}`;
    throw new EmbeddedPostgresError(message, { cause });
  });
  return { url: url(database), logFile, ...server };
}

async function readOrMakePassword(
  directory: string,
  account: Account,
  initialised: boolean,
): Promise<string> {
  const file = join(directory, "password");
  if (existsSync(file)) return (await readFile(file, "utf8")).trim();
  if (initialised) {
    throw new EmbeddedPostgresError(
      `${file} is missing: restore it, or remove ${directory} with all its data`,
    );
  }
  const password = randomBytes(24).toString("hex");
  await writeFile(file, `${password}\n`, { mode: 0o600 });
  if (account.owner) await chown(file, account.owner.uid, account.owner.gid);
  return password;
}

/**
 * Creates the cluster in another directory and renames it when complete, so that an interrupted start leaves nothing
 * that looks like a cluster. The name is random, as the initdb of a killed start may still be writing.
 */
async function initialise(
  binaries: Binaries,
  account: Account,
  directory: string,
  durable: boolean,
): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name.startsWith("unfinished-")) await rm(join(directory, name), { recursive: true, force: true });
  }
  const unfinished = join(directory, `unfinished-${randomBytes(4).toString("hex")}`);
  const args = [
    `--pgdata=${unfinished}`,
    `--username=${user}`,
    `--pwfile=${join(directory, "password")}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--locale=C.UTF-8",
    "--no-instructions",
    ...(durable ? [] : fastCluster),
  ];
  const child = run(binaries.initdb, args, account, ["ignore", "pipe", "pipe"]);
  let output = "";
  child.stdout?.on("data", (chunk) => (output += chunk));
  child.stderr?.on("data", (chunk) => (output += chunk));
  const code = await new Promise((settle) => child.on("close", settle).on("error", settle));
  if (code !== 0) {
    const reason =
      output
        .trim()
        .split("\n")
        .findLast((line) => line.includes("rror")) ?? String(code);
    throw new EmbeddedPostgresError(`initdb could not create ${directory}: ${reason}`);
  }
  await rename(unfinished, join(directory, "data"));
}

interface ServerOptions extends EmbeddedPostgresOptions {
  data: string;
  logFile: string;
}

async function startServer(binaries: Binaries, account: Account, options: ServerOptions) {
  for (let attempt = 1; ; attempt++) {
    const port = options.port || (await freePort("127.0.0.1", options.reservedPorts));
    try {
      return await tryStart(binaries, account, options, port);
    } catch (error) {
      const { message } = error as Error;
      // Another process took the free port first, or the last backend of a killed server is just ending.
      const again = /Address already in use|shared memory block .* still in use/.test(message);
      if (!again || attempt === 5 || (options.port && message.includes("Address"))) throw error;
      await Bun.sleep(200);
    }
  }
}

async function tryStart(binaries: Binaries, account: Account, options: ServerOptions, port: number) {
  const settings: Record<string, string> = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: "200",
    log_timezone: "UTC",
    timezone: "UTC",
    ...(options.durable === false ? fastSettings : {}),
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const offset = (await stat(options.logFile).catch(() => undefined))?.size ?? 0;
  const log = openSync(options.logFile, "a", 0o600);
  // Uses a file, not a pipe: PostgreSQL must be able to shut down and log it after we are gone.
  const child = run(binaries.postgres, ["-D", options.data, "-p", String(port), ...flags], account, [
    "ignore",
    log,
    log,
  ]);
  closeSync(log);
  const exited = new Promise<void>((settle) =>
    child.once("exit", () => settle()).once("error", () => settle()),
  );
  const watchdog = startWatchdog(child.pid!, options.temporary ? options.directory : "");
  exited.then(() => watchdog.dismiss());
  await waitUntilReady(options.data, child.pid!, exited, async () =>
    (await readFile(options.logFile)).subarray(offset).toString(),
  );
  const stop = async () => {
    // SIGINT: fast shutdown. SIGQUIT: immediate shutdown, with recovery at the next start.
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGINT");
    const timer = setTimeout(() => child.kill("SIGQUIT"), stopSeconds * 1000);
    await exited;
    clearTimeout(timer);
    await watchdog.ended;
  };
  return { port, exited, stop };
}

/** Half of the work of a new connection is otherwise the hash of its password, on either side. */
const fastCluster = ["--no-sync", "--set", "scram_iterations=1"];

const fastSettings = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  wal_level: "minimal",
  max_wal_senders: "0",
  // In the data directory, which is removed even if PostgreSQL was killed. Files in /dev/shm would stay.
  dynamic_shared_memory_type: "mmap",
  // For tests of revocation.
  max_prepared_transactions: "4",
};

/**
 * Runs in a separate session, so that Ctrl-C in the terminal only reaches the starter, which stops PostgreSQL after its
 * clients.
 */
function run(command: string, args: string[], account: Account, stdio: StdioOptions): ChildProcess {
  const [program, ...rest] = [...account.prefix, command, ...args];
  const environment = { PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC", SystemRoot: process.env.SystemRoot };
  return spawn(program!, rest, {
    ...account.spawn,
    stdio,
    env: environment,
    detached: true,
    windowsHide: true,
  });
}

/**
 * Starts a shell that reads from us: a line means a clean end; end of file means that we are gone, so it stops
 * PostgreSQL. Either way it removes the directory of a temporary server.
 */
function startWatchdog(pid: number, remove: string): { dismiss(): void; ended: Promise<void> } {
  if (process.platform === "win32") return { dismiss() {}, ended: Promise.resolve() };
  const script = `trap '' INT TERM HUP
    read -r _ || kill -INT "$1" 2>/dev/null
    [ -n "$2" ] || exit 0
    n=0; while [ $n -lt 100 ] && [ -e "$2/data/postmaster.pid" ]; do sleep 0.1; n=$((n + 1)); done
    rm -rf "$2"`;
  const child = spawn("sh", ["-c", script, "svc-watchdog", String(pid), remove], {
    stdio: ["pipe", "ignore", "ignore"],
    cwd: "/",
    detached: true,
  });
  child.unref();
  child.stdin.on("error", () => {});
  const ended = new Promise<void>((settle) => child.once("exit", () => settle()));
  return { dismiss: () => child.stdin.end("\n"), ended };
}

async function createDatabase(url: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    const found = await sql`select from pg_database where datname = ${database}`;
    if (found.length === 0) await sql`create database ${sql(database)}`;
  } finally {
    await sql.end({ timeout: 5 });
  }
}
