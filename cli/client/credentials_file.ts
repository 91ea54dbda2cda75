import { Database } from "bun:sqlite";
import * as fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { ConfigurationError } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { type Credentials, formatCredentials, NO_CREDENTIALS, parseCredentials } from "./credentials.ts";
import { credentialsPath, writePrivately } from "./private_file.ts";

/** The time to wait for other writers of the file, which need a few milliseconds each. */
const LOCK_TIMEOUT_MS = 10_000;

/**
 * Reads the credentials, which are empty if there is no file yet.
 * @throws ConfigurationError, which names the fix, if the file is corrupt or others can read or replace it. The file is
 * left unchanged, because it may be the only copy of something that the user needs.
 */
export function readCredentials(env: Environment): Credentials {
  const path = credentialsPath(env);
  checkDirectory(dirname(path));
  const file = resolveFile(path);
  return file === undefined ? NO_CREDENTIALS : readChecked(file);
}

/**
 * Changes the credentials: reads, changes and replaces the file under a lock, so that concurrent sign-ins lose nothing.
 * A reader sees the old file or the new one, even after a power failure.
 */
export function updateCredentials(env: Environment, change: (credentials: Credentials) => Credentials): void {
  const path = credentialsPath(env);
  inLockedDirectory(path, () => {
    const file = resolveFile(path) ?? path;
    const before = fs.existsSync(file) ? readChecked(file) : NO_CREDENTIALS;
    const text = formatCredentials(change(before));
    guard(`write ${file}`, () => replaceFile(file, text));
  });
}

/** Runs `work` under the lock of the credentials, which stay as they are. */
export function lockCredentials<T>(env: Environment, work: () => T): T {
  return inLockedDirectory(credentialsPath(env), work);
}

/** Characters of the largest token, with a margin for its entry. */
const LARGEST_ENTRY = 32_768;

/**
 * Checks that `updateCredentials` would work, by writing and removing a file of that size: the directory is writable,
 * and the disk has space. The credentials themselves are not changed.
 *
 * @throws ConfigurationError, which names the failed operation
 */
export function assertStorable(env: Environment): void {
  const path = credentialsPath(env);
  inLockedDirectory(path, () => {
    const file = resolveFile(path) ?? path;
    const size = fs.existsSync(file) ? fs.statSync(file).size : 0;
    guard(`write ${file}`, () => {
      removeLeftovers(file);
      const probe = `${file}.check`;
      writePrivately(probe, " ".repeat(size + LARGEST_ENTRY));
      fs.rmSync(probe);
    });
  });
}

function inLockedDirectory<T>(path: string, work: () => T): T {
  const directory = dirname(path);
  guard(`create ${directory}`, () => fs.mkdirSync(directory, { recursive: true, mode: 0o700 }));
  checkDirectory(directory);
  return locked(directory, work);
}

/**
 * A lock of the kernel, through SQLite, which supports every platform. Unlike a lock file, it ends with the process that
 * holds it. `work` must be synchronous.
 */
function locked<T>(directory: string, work: () => T): T {
  const database = guard(`lock ${directory}`, () => {
    const database = new Database(join(directory, "credentials.lock"), { create: true });
    database.run(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`);
    database.run("BEGIN EXCLUSIVE");
    return database;
  });
  try {
    return work();
  } finally {
    database.close();
  }
}

function replaceFile(file: string, text: string): void {
  removeLeftovers(file);
  writePrivately(file, text);
  syncDirectory(dirname(file));
}

/** Removes temporary files of dead writers, which contain tokens. Only under the lock. */
function removeLeftovers(file: string): void {
  const directory = dirname(file);
  const prefix = `.${basename(file)}.`;
  for (const name of fs.readdirSync(directory))
    if (name.startsWith(prefix) && name.endsWith(".tmp")) fs.rmSync(join(directory, name), { force: true });
}

/** Makes the rename durable, if directories can be synchronised (not on Windows). */
function syncDirectory(directory: string): void {
  try {
    const descriptor = fs.openSync(directory, "r");
    fs.fsyncSync(descriptor);
    fs.closeSync(descriptor);
  } catch {}
}

/** The file, or the target of a symbolic link (dotfiles), so that the link is kept; undefined if there is no file yet. */
function resolveFile(path: string): string | undefined {
  const stat = guard(`read ${path}`, () => fs.lstatSync(path, { throwIfNoEntry: false }));
  if (stat === undefined || !stat.isSymbolicLink()) return stat === undefined ? undefined : path;
  if (!fs.existsSync(path)) throw refusal(`${path} is a symbolic link to nothing`, `rm ${path}`);
  const target = fs.realpathSync(path);
  checkDirectory(dirname(target));
  return target;
}

function readChecked(file: string): Credentials {
  const stat = guard(`read ${file}`, () => fs.statSync(file));
  if (!stat.isFile()) throw refusal(`${file} is not a file`, "move it away");
  if (process.platform !== "win32") {
    if (stat.uid !== process.getuid?.()) throw refusal(`${file} belongs to another user`, "move it away");
    if (stat.mode & 0o077) throw refusal(`${file} can be read or written by others`, `chmod 600 ${file}`);
    // Checks the mode instead of trying to read, so that root gets the same error.
    if (!(stat.mode & 0o400)) throw refusal(`${file} cannot be read`, `chmod 600 ${file}`);
  }
  const credentials = parseCredentials(guard(`read ${file}`, () => fs.readFileSync(file, "utf8")));
  if (credentials === undefined)
    throw refusal(`${file} is corrupt`, "repair it, or move it away and run svc login");
  return credentials;
}

/** Users who can write to the directory can replace the file in it. */
function checkDirectory(directory: string): void {
  const stat = guard(`read ${directory}`, () => fs.statSync(directory, { throwIfNoEntry: false }));
  if (stat === undefined) return;
  if (!stat.isDirectory()) throw refusal(`${directory} is not a directory`, "move it away");
  if (process.platform === "win32") return;
  if (stat.uid !== process.getuid?.()) throw refusal(`${directory} belongs to another user`, "move it away");
  if (stat.mode & 0o022) throw refusal(`${directory} can be written by others`, `chmod 700 ${directory}`);
}

function refusal(fault: string, fix: string): ConfigurationError {
  return new ConfigurationError([`${fault}; to fix it: ${fix}`]);
}

function guard<T>(action: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new ConfigurationError([`cannot ${action} (${code ?? message})`], { cause: error });
  }
}
