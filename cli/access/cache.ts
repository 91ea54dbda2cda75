import * as fs from "node:fs";
import { dirname, join } from "node:path";
import { ConfigurationError } from "../../platform/errors.ts";
import { sha256Hex } from "../../platform/secret.ts";
import type { Environment } from "../../platform/variable.ts";
import { credentialsPath, writePrivately } from "../client/private_file.ts";
import { clockAhead, machineClock } from "../client/server_clock.ts";
import { chosenServer } from "../client/session.ts";
import { readToken } from "../client/token.ts";
import { Interrupted } from "../errors.ts";
import type { Io } from "../io.ts";
import type { Issued } from "./access.ts";

// kubectl and the AWS tools run a command for their credential each time they start. So a credential is cached in a private
// file until shortly before it expires or its user signs out. Keep imports few: each of these commands loads all of them.

/** Identifies a cached credential. */
export interface CacheKey {
  /** The base URL. */
  server: string;
  user: string;
  /** Identifies the session. The lease ends with it. */
  session: string;
  role: string;
  incident?: string;
  /** In seconds. */
  duration?: number;
}

export type Account = Pick<CacheKey, "server" | "user" | "session">;

/** A credential, and by how many milliseconds the clock of this machine was behind the server's when it was issued. */
interface Kept {
  issued: Issued;
  behind: number;
}

/** How many seconds before its end a credential must be replaced, given its lifetime in seconds. */
export type Margin = (lifetime: number) => number;

type Warn = (message: string) => void;

const pollMilliseconds = 100;
const largestFile = 1_000_000;
/** The age after which locks and unreadable files are deleted. */
const unreadableSeconds = 86_400;

/**
 * The session that a command would use, even if it has expired. Does not read the token, because a keychain may prompt for
 * it. Undefined when not signed in.
 */
export function accountOf(io: Pick<Io, "env" | "certificate" | "server">): Account | undefined {
  const { env, certificate } = io;
  const { server, credentials } = chosenServer(io);
  const { base } = server;
  if (certificate) {
    const known = credentials().servers[base]?.certificate;
    return known && { server: base, user: known.user, session: known.sign_in_expires_at };
  }
  const given = env.SVC_TOKEN?.trim();
  if (given) {
    const user = readToken(given)?.subject;
    return user === undefined ? undefined : { server: base, user, session: sha256Hex(given) };
  }
  const entry = credentials().servers[base];
  // A user has only one session that ends at this millisecond.
  return entry?.storage && { server: base, user: entry.user, session: entry.expires_at! };
}

/** The cached credential, if it is still fresh and the calling process has not received it before (`recordReceipt`). */
export function findCredential(
  env: Environment,
  key: CacheKey,
  { now, margin, warn }: { now: Date; margin: Margin; warn: Warn },
): Issued | undefined {
  const path = pathOf(env, key);
  const known = read(path, key, warn);
  return known && isFresh(known, now, margin) && !hasReceived(env, path, known.issued)
    ? known.issued
    : undefined;
}

/**
 * Records that a Kubernetes client received a credential. A client asks once, and again only if the cluster rejects the
 * token, but does not tell us why it asks (KUBERNETES_EXEC_INFO).
 */
export function recordReceipt(env: Environment, key: CacheKey, issued: Issued): void {
  const receipt = receiptOf(env, issued);
  if (receipt === undefined) return;
  try {
    fs.appendFileSync(receiptsPath(pathOf(env, key)), receipt, { mode: 0o600 });
  } catch {
    // Without a cache there is nothing to replace.
  }
}

function hasReceived(env: Environment, path: string, issued: Issued): boolean {
  const receipt = receiptOf(env, issued);
  if (receipt === undefined) return false;
  try {
    return `\n${fs.readFileSync(receiptsPath(path), "utf8")}`.includes(`\n${receipt}`);
  } catch {
    return false;
  }
}

/** A line that identifies the process that started us and the lease. Undefined unless it is a Kubernetes client. */
function receiptOf(env: Environment, issued: Issued): string | undefined {
  if (env.KUBERNETES_EXEC_INFO === undefined || issued.credential.kind !== "token") return undefined;
  let pid = process.ppid;
  // Older releases of Node cannot become Bun: bin/svc.mjs then waits for us.
  if (env.SVC_END_WITH?.split(",")[0] === String(pid)) pid = Number(statOf(pid)[1] ?? pid);
  // Ids of processes are reused, and in containers they are often the same.
  const started = statOf(pid)[19] ?? "";
  return `${pid} ${started} ${issued.id}\n`;
}

/** The fields in /proc/<pid>/stat from the third on, on Linux: 1 is the parent's id, 19 the start time. */
function statOf(pid: number): string[] {
  try {
    return fs.readFileSync(`/proc/${pid}/stat`, "utf8").replace(/.*\) /s, "").split(" ");
  } catch {
    return [];
  }
}

/**
 * Returns the cached credential if it is still fresh. Otherwise it calls `issue`, in one process at a time. If that fails,
 * it returns the cached credential until that expires. A cache that cannot be read or written is not used.
 */
export async function cachedCredential(...args: Parameters<typeof cachedOrIssued>): Promise<Issued> {
  const [io, key] = args;
  const issued = await cachedOrIssued(...args);
  recordReceipt(io.env, key, issued);
  return issued;
}

async function cachedOrIssued(
  io: Io,
  key: CacheKey,
  margin: Margin,
  issue: () => Promise<Issued>,
): Promise<Issued> {
  const warn: Warn = (message) => io.stderr.write(`svc: warning: ${message}\n`);
  const look = (within: Margin, say: Warn = () => {}) =>
    findCredential(io.env, key, { now: machineClock(io).now(), margin: within, warn: say });
  const known = look(margin, warn);
  if (known) return known;
  const path = pathOf(io.env, key);
  const directory = makeDirectory(dirname(path), io.clock.now(), warn);
  if (!directory) return await issue();
  const lockPath = `${path.slice(0, -".json".length)}.lock`;
  const lock = await waitForLock(io, lockPath, () => look(margin) !== undefined);
  try {
    const meanwhile = look(margin);
    if (meanwhile) return meanwhile;
    const issued = await issue();
    // A clock that is ahead only causes a replacement too early, and may be set right before the credential's end.
    const behind = Math.max(0, -clockAhead(io));
    // The user may have signed out in the meantime.
    const account = accountOf({ ...io, server: key.server });
    if (account?.session === key.session) write(path, key, { issued, behind }, warn);
    return issued;
  } catch (error) {
    const last = error instanceof Interrupted ? undefined : look(() => 0);
    if (!last) throw error;
    warn(`cannot replace the credential for ${key.role}: ${(error as Error).message}`);
    return last;
  } finally {
    // Processes that wait for the lock find the credential. Processes that start now create a new lock.
    if (lock) fs.rmSync(lockPath, { force: true });
    lock?.close();
  }
}

/** Deletes the cached credentials of a server, or of all servers. @throws ConfigurationError if it cannot */
export function forgetCredentials(env: Environment, server?: string): void {
  const directory = directoryOf(env);
  const prefix = server === undefined ? "" : prefixOf(server);
  try {
    const names = fs.existsSync(directory) ? fs.readdirSync(directory) : [];
    for (const name of names)
      if (name.startsWith(prefix) && !name.endsWith(".lock"))
        fs.rmSync(join(directory, name), { force: true, recursive: true });
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    throw new ConfigurationError([`cannot delete the credentials in ${directory} (${code})`], {
      cause: error,
    });
  }
}

const directoryOf = (env: Environment) => join(dirname(credentialsPath(env)), "issued");
const prefixOf = (server: string) => `${sha256Hex(server).slice(0, 16)}-`;
const textOf = ({ server, user, session, role, incident, duration }: CacheKey) =>
  JSON.stringify([server, user, session, role, incident ?? null, duration ?? null]);

/** The file name reveals nothing about the credential. */
function pathOf(env: Environment, key: CacheKey): string {
  return join(directoryOf(env), `${prefixOf(key.server)}${sha256Hex(textOf(key)).slice(0, 40)}.json`);
}

const receiptsPath = (path: string) => `${path.slice(0, -".json".length)}.received`;

function isFresh({ issued, behind }: Kept, now: Date, margin: Margin): boolean {
  const end = Date.parse(issued.expires_at);
  const lifetime = (end - Date.parse(issued.created_at)) / 1000;
  return (end - now.getTime() - behind) / 1000 > margin(lifetime);
}

function read(path: string, key: CacheKey, warn: Warn): Kept | undefined {
  const kept = readFile(path, warn);
  // The file may have been copied or renamed.
  return kept?.key === textOf(key) ? kept : undefined;
}

/** Reads a cached credential. Undefined for any other file. */
function readFile(path: string, warn: Warn): (Kept & { key: string }) | undefined {
  let descriptor: number;
  try {
    const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;
    // Without O_NONBLOCK, opening a pipe would block.
    descriptor = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const stat = fs.fstatSync(descriptor);
    const fault = faultOf(stat);
    if (fault !== undefined) warn(`ignoring ${path}, which ${fault}`);
    if (fault !== undefined || !stat.isFile() || stat.size > largestFile) return undefined;
    const kept = JSON.parse(fs.readFileSync(descriptor, "utf8")) as Kept & { key: string };
    return isIssued(kept.issued) && typeof kept.behind === "number" ? kept : undefined;
  } catch {
    return undefined;
  } finally {
    fs.closeSync(descriptor);
  }
}

/** A file that another user can write may contain that user's credential, and our user would work in their account. */
function faultOf({ uid, mode }: fs.Stats): string | undefined {
  if (process.platform === "win32") return undefined;
  if (uid !== process.getuid?.()) return "belongs to another user";
  if (mode & 0o077) return "can be read or written by others";
  return undefined;
}

function isIssued(value: Issued): boolean {
  const { created_at, expires_at, role, credential } = value;
  const areTimes = [created_at, expires_at].every((time) => !Number.isNaN(Date.parse(time)));
  return (
    areTimes && typeof role === "string" && typeof credential.kind === "string" && Boolean(credential.fields)
  );
}

/** Creates the directory, readable by its owner only. Returns false if it cannot. */
function makeDirectory(directory: string, now: Date, warn: Warn): boolean {
  try {
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    const stat = fs.lstatSync(directory);
    if (!stat.isDirectory()) throw Object.assign(new Error(), { code: "ENOTDIR" });
    if (process.platform !== "win32" && stat.uid !== process.getuid?.()) {
      warn(`${directory} belongs to another user, so the credential is not cached`);
      return false;
    }
    if (process.platform !== "win32" && stat.mode & 0o077) fs.chmodSync(directory, 0o700);
    removeOld(directory, now);
    return true;
  } catch (error) {
    warnUnwritable(directory, error, warn);
    return false;
  }
}

function warnUnwritable(path: string, error: unknown, warn: Warn): void {
  const { code = "unknown" } = error as NodeJS.ErrnoException;
  warn(`${path} cannot be written (${code}), so the credential is not cached`);
}

function write(path: string, key: CacheKey, kept: Kept, warn: Warn): void {
  try {
    writePrivately(path, JSON.stringify({ key: textOf(key), ...kept }));
    fs.rmSync(receiptsPath(path), { force: true });
  } catch (error) {
    warnUnwritable(path, error, warn);
  }
}

/** Deletes expired credentials and old locks, so that no secrets are left behind. */
function removeOld(directory: string, now: Date): void {
  for (const name of fs.readdirSync(directory)) {
    const path = join(directory, name);
    try {
      const age = (now.getTime() - fs.lstatSync(path).mtimeMs) / 1000;
      const kept = name.endsWith(".json") ? readFile(path, () => {}) : undefined;
      const isOver = kept ? Date.parse(kept.issued.expires_at) < now.getTime() : age > unreadableSeconds;
      if (isOver) fs.rmSync(path, { force: true });
    } catch {
      // Another process deleted it first, or it is not our file.
    }
  }
}

/**
 * Locks one credential until the lock is closed or the process ends. Returns undefined if locking is impossible, or if
 * `isDone` becomes true first. Uses a kernel lock through SQLite, like credentials_file.ts.
 */
async function waitForLock(
  io: Io,
  path: string,
  isDone: () => boolean,
): Promise<{ close(): void } | undefined> {
  const { Database } = await import("bun:sqlite");
  return await io.interruptible(async (signal) => {
    for (;;) {
      let database: InstanceType<typeof Database> | undefined;
      try {
        database = new Database(path, { create: true });
        database.run("PRAGMA busy_timeout = 0");
        database.run("BEGIN EXCLUSIVE");
        return database;
      } catch (error) {
        database?.close();
        if ((error as { code?: string }).code !== "SQLITE_BUSY") return undefined;
      }
      if (isDone()) return undefined;
      await io.sleep(pollMilliseconds, signal);
    }
  });
}
