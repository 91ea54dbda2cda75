import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { dirname, join } from "node:path";
import type { Io } from "../io.ts";
import type { Issued } from "./access.ts";
import { credentialsPath } from "./credentials_file.ts";
import type { Session } from "./session.ts";

// Some tools run a command for their credential each time they start: kubectl, and those that use AWS. So one that is still
// good is kept in a private file, for the session that it was issued in: when that ends, so does the lease.

/** What decides whether a credential that is there is the one that is wanted. */
export interface CacheKey {
  session: Session;
  role: string;
  /** Everything else that was asked for: format, incident, duration. */
  asked: readonly (string | number | undefined)[];
}

/**
 * The credential that was issued before, unless it ends within so many seconds; else that which `issue` gets. A cache that
 * cannot be read or written is none.
 */
export async function cachedCredential(
  io: Io,
  key: CacheKey,
  secondsBeforeEnd: number,
  issue: () => Promise<Issued>,
): Promise<Issued> {
  const path = pathOf(io, key);
  const known = read(path);
  const lives = (issued: Issued) =>
    new Date(issued.expires_at).getTime() - io.clock.now().getTime() > secondsBeforeEnd * 1000;
  if (known && lives(known)) return known;
  const issued = await issue();
  write(path, issued, io.clock.now());
  return issued;
}

/** The name is a digest: it holds the token of the session. */
function pathOf({ env }: Io, { session, role, asked }: CacheKey): string {
  const text = JSON.stringify([session.server.base, session.token.token, role, ...asked]);
  const digest = createHash("sha256").update(text).digest("hex");
  return join(dirname(credentialsPath(env)), "issued", `${digest}.json`);
}

function read(path: string): Issued | undefined {
  try {
    const { uid, mode } = fs.statSync(path);
    // Somebody else's may name a server of theirs.
    if ((mode & 0o077) !== 0 || (process.getuid && uid !== process.getuid())) return undefined;
    const issued = JSON.parse(fs.readFileSync(path, "utf8")) as Issued;
    return typeof issued.expires_at === "string" && issued.credential ? issued : undefined;
  } catch {
    return undefined;
  }
}

function write(path: string, issued: Issued, now: Date): void {
  const directory = dirname(path);
  const temporary = `${path}.${crypto.randomUUID()}.tmp`;
  try {
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    fs.chmodSync(directory, 0o700);
    removeExpired(directory, now);
    fs.writeFileSync(temporary, JSON.stringify(issued), { mode: 0o600, flag: "wx" });
    fs.renameSync(temporary, path);
  } catch {
    try {
      fs.rmSync(temporary, { force: true });
    } catch {
      // There is no such folder.
    }
  }
}

/** Those that nobody will ask for again: of sessions that have ended. */
function removeExpired(directory: string, now: Date): void {
  for (const name of fs.readdirSync(directory)) {
    const path = join(directory, name);
    const issued = read(path);
    // Somebody else may be writing one.
    const isBeingWritten = name.endsWith(".tmp") && now.getTime() - fs.statSync(path).mtimeMs < 60_000;
    if (!isBeingWritten && (!issued || new Date(issued.expires_at) < now)) fs.rmSync(path, { force: true });
  }
}
