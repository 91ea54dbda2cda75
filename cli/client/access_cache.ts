import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { dirname, join } from "node:path";
import { ConfigurationError } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { Interrupted } from "../errors.ts";
import type { Io } from "../io.ts";
import type { Issued } from "./access.ts";
import { credentialsPath, readCredentials } from "./credentials_file.ts";
import { chooseServer } from "./server.ts";
import { readToken } from "./token.ts";

// Some tools run a command for their credential each time they start: kubectl, and those that use AWS. So one that is still
// good is kept in a private file, until its user signs out. Imports are few here: all of it is loaded for each of them.

/** What decides whether a credential that is there is the one that is wanted. */
export interface CacheKey {
  /** The base address. */
  server: string;
  user: string;
  /** Which session it is: when that ends, so does the lease. */
  session: string;
  role: string;
  incident?: string;
  /** Seconds. */
  duration?: number;
}

export type Account = Pick<CacheKey, "server" | "user" | "session">;

/** How many seconds before its end a credential is no longer good enough, by how many it lasts in all. */
export type Margin = (lifetime: number) => number;

type Warn = (message: string) => void;

const pollMilliseconds = 100;
const largestFile = 1_000_000;
/** After which a lock, or a file that cannot be read, is of no use to anybody. */
const unreadableSeconds = 86_400;

/**
 * Whose session a command is for, also one that has expired; without a look at the token, which may be in a keychain that
 * asks its owner. Undefined when nobody is signed in.
 */
export function accountOf(
  { env, certificate }: Pick<Io, "env" | "certificate">,
  option: string | undefined,
): Account | undefined {
  let read: ReturnType<typeof readCredentials> | undefined;
  const credentials = () => {
    read ??= readCredentials(env);
    return read;
  };
  const { base } = chooseServer(option, env.SVC_SERVER, () => credentials().last);
  if (certificate) {
    const known = credentials().servers[base]?.certificate;
    return known && { server: base, user: known.user, session: known.sign_in_expires_at };
  }
  const given = env.SVC_TOKEN?.trim();
  if (given) {
    const user = readToken(given)?.subject;
    return user === undefined ? undefined : { server: base, user, session: digestOf(given) };
  }
  const entry = credentials().servers[base];
  // To the millisecond, there is one session of a user that ends then.
  return entry?.storage && { server: base, user: entry.user, session: entry.expires_at! };
}

/** The credential that was issued before, if it is still good enough. */
export function findCredential(
  env: Environment,
  key: CacheKey,
  { now, margin, warn }: { now: Date; margin: Margin; warn: Warn },
): Issued | undefined {
  const known = read(pathOf(env, key), key, warn);
  return known && isFresh(known, now, margin) ? known : undefined;
}

/**
 * The credential that was issued before, if it is still good enough; else that which `issue` gets, for which other
 * processes that want the same one wait. If there is none to be had, the one before is used until its end. A cache that
 * cannot be read or written is none.
 */
export async function cachedCredential(
  io: Io,
  key: CacheKey,
  margin: Margin,
  issue: () => Promise<Issued>,
): Promise<Issued> {
  const warn: Warn = (message) => io.stderr.write(`svc: warning: ${message}\n`);
  const look = (within: Margin, say: Warn = () => {}) =>
    findCredential(io.env, key, { now: io.clock.now(), margin: within, warn: say });
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
    // Not of somebody who has signed out since.
    const account = accountOf(io, key.server);
    if (account?.session === key.session) write(path, { key, issued }, warn);
    return issued;
  } catch (error) {
    const last = error instanceof Interrupted ? undefined : look(() => 0);
    if (!last) throw error;
    warn(`no newer credential for ${key.role}: ${(error as Error).message}`);
    return last;
  } finally {
    // Those that wait for it find the credential; somebody who comes now makes another lock.
    if (lock) fs.rmSync(lockPath, { force: true });
    lock?.close();
  }
}

/** Deletes what is kept of a server, or of all. @throws ConfigurationError when it stays where it is */
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

const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");
const directoryOf = (env: Environment) => join(dirname(credentialsPath(env)), "issued");
const prefixOf = (server: string) => `${digestOf(server).slice(0, 16)}-`;
const textOf = ({ server, user, session, role, incident, duration }: CacheKey) =>
  JSON.stringify([server, user, session, role, incident ?? null, duration ?? null]);

/** The name says nothing of what is inside. */
function pathOf(env: Environment, key: CacheKey): string {
  return join(directoryOf(env), `${prefixOf(key.server)}${digestOf(textOf(key)).slice(0, 40)}.json`);
}

function isFresh({ created_at, expires_at }: Issued, now: Date, margin: Margin): boolean {
  const end = Date.parse(expires_at);
  const lifetime = (end - Date.parse(created_at)) / 1000;
  return (end - now.getTime()) / 1000 > margin(lifetime);
}

function read(path: string, key: CacheKey, warn: Warn): Issued | undefined {
  const kept = readFile(path, warn);
  // The name could be that of another one.
  return kept?.key === textOf(key) ? kept.issued : undefined;
}

/** What is kept in a file of ours; undefined for everything else. */
function readFile(path: string, warn: Warn): { key: string; issued: Issued } | undefined {
  let descriptor: number;
  try {
    const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;
    // A pipe of this name would never answer.
    descriptor = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const stat = fs.fstatSync(descriptor);
    const fault = faultOf(stat);
    if (fault !== undefined) warn(`${path} ${fault}, and is not used`);
    if (fault !== undefined || !stat.isFile() || stat.size > largestFile) return undefined;
    const kept = JSON.parse(fs.readFileSync(descriptor, "utf8")) as { key: string; issued: Issued };
    return isIssued(kept.issued) ? kept : undefined;
  } catch {
    return undefined;
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Somebody else's may be a credential of theirs, in whose account our user would work. */
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

/** The folder, for its owner alone; false when there can be none. */
function makeDirectory(directory: string, now: Date, warn: Warn): boolean {
  try {
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    const stat = fs.lstatSync(directory);
    if (!stat.isDirectory()) throw Object.assign(new Error(), { code: "ENOTDIR" });
    if (process.platform !== "win32" && stat.uid !== process.getuid?.()) {
      warn(`${directory} belongs to another user, so the credential is not kept`);
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
  warn(`${path} cannot be written (${code}), so the credential is not kept`);
}

function write(path: string, { key, issued }: { key: CacheKey; issued: Issued }, warn: Warn): void {
  const temporary = `${path}.${crypto.randomUUID()}.tmp`;
  try {
    fs.writeFileSync(temporary, JSON.stringify({ key: textOf(key), issued }), { mode: 0o600, flag: "wx" });
    fs.renameSync(temporary, path);
  } catch (error) {
    warnUnwritable(path, error, warn);
    fs.rmSync(temporary, { force: true });
  }
}

/** Deletes what nobody will ask for again: a secret must not lie about. */
function removeOld(directory: string, now: Date): void {
  for (const name of fs.readdirSync(directory)) {
    const path = join(directory, name);
    try {
      const age = (now.getTime() - fs.lstatSync(path).mtimeMs) / 1000;
      const kept = name.endsWith(".json") ? readFile(path, () => {}) : undefined;
      const isOver = kept ? Date.parse(kept.issued.expires_at) < now.getTime() : age > unreadableSeconds;
      if (isOver) fs.rmSync(path, { force: true });
    } catch {
      // Another process was faster, or it is nothing of ours.
    }
  }
}

/**
 * The lock on one credential, held until it is closed or the process ends; undefined when there can be none, or `isDone`
 * before it is free. The kernel's own, by way of SQLite, as in credentials_file.ts.
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
