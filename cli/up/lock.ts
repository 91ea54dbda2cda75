import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigurationError, Conflict, SvcError } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import type { RunningTrial } from "../trial.ts";

/** The lock of a data directory. */
export interface DirectoryLock extends Disposable {
  /** Publishes the configuration for other commands. The file contains secrets, so only its owner can read it. */
  publish(environment: Environment): void;
}

/**
 * Ensures that this is the only `svc up` of a data directory. SQLite's exclusive lock is a lock of the operating system, so
 * only one process can have it, and it is released however the process ends.
 *
 * @throws Conflict with the pid and address of the running one, SvcError if the directory is not writable
 */
export function lockDirectory(directory: string, url: string): DirectoryLock {
  const file = join(directory, fileName);
  const database = openIn(directory);
  try {
    // A command that checks for a trial (runningTrial) holds it only for a moment.
    database.run("pragma busy_timeout = 200");
    database.run("begin exclusive");
  } catch (cause) {
    database.close();
    if (!codeOf(cause)?.startsWith("SQLITE_BUSY")) throw notWritable(directory, cause);
    throw new Conflict(describe(file), { cause });
  }
  const publish = (environment: Environment) => {
    const trial: RunningTrial = { pid: process.pid, url, environment };
    rmSync(`${file}.new`, { force: true });
    writeFileSync(`${file}.new`, `${JSON.stringify(trial)}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  };
  publish({});
  return {
    publish,
    [Symbol.dispose]() {
      rmSync(file, { force: true });
      database.close();
    },
  };
}

/**
 * The trial of a data directory, if it is running and ready.
 * @throws ConfigurationError if its files cannot be read, because they belong to another user
 */
export function runningTrial(directory: string): RunningTrial | undefined {
  if (!isLocked(directory)) return undefined;
  const file = join(directory, fileName);
  try {
    const trial = JSON.parse(readFileSync(file, "utf8")) as RunningTrial;
    return trial.environment.SVC_DATABASE_URL === undefined ? undefined : trial;
  } catch (cause) {
    // It is stopping.
    if (codeOf(cause) === "ENOENT") return undefined;
    const reason = codeOf(cause) ?? "not JSON";
    throw new ConfigurationError([`A trial runs here, and ${file} cannot be read (${reason})`], { cause });
  }
}

function isLocked(directory: string): boolean {
  const file = join(directory, "lock.db");
  if (!existsSync(file)) return false;
  let database: Database | undefined;
  try {
    database = new Database(file, { readonly: true });
    database.run("pragma busy_timeout = 0");
    database.query("select 1 from sqlite_master").get();
    return false;
  } catch (cause) {
    const code = codeOf(cause);
    if (code?.startsWith("SQLITE_BUSY")) return true;
    const fault = `Whether a trial runs here is unknown: ${file} cannot be read (${code})`;
    throw new ConfigurationError([fault], { cause });
  } finally {
    database?.close();
  }
}

const fileName = "up.json";

function openIn(directory: string): Database {
  try {
    mkdirSync(directory, { recursive: true });
    return new Database(join(directory, "lock.db"));
  } catch (cause) {
    throw notWritable(directory, cause);
  }
}

function notWritable(directory: string, cause: unknown): SvcError {
  const reason = `${directory} cannot be written (${codeOf(cause)})`;
  return new SvcError("configuration", `${reason}: choose another folder with --data-dir`, { cause });
}

const codeOf = (error: unknown) => (error as { code?: string }).code;

function describe(file: string): string {
  try {
    const { pid, url } = JSON.parse(readFileSync(file, "utf8")) as RunningTrial;
    return `svc is already running here: pid ${pid}, ${url}. Nothing was changed; stop it with Ctrl-C in its terminal, or kill ${pid}`;
  } catch {
    return "Another svc up is just starting or stopping here. Nothing was changed; try again in a moment";
  }
}
