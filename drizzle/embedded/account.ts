import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { lchown, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { EmbeddedPostgresError } from "./error.ts";

/** How to start PostgreSQL's programs as a non-root user, since they refuse to run as root. */
export interface Account {
  /** Prepended to each command. */
  prefix: string[];
  /** Options for `spawn`, if the prefix does not change the user. */
  spawn: { uid?: number; gid?: number };
  /** The required owner of the data directory, as seen by this process; undefined if we own it anyway. */
  owner?: { uid: number; gid: number };
}

/**
 * A normal user just starts them. Root has three ways, best first:
 * 1. a user namespace in which root has another number. Files stay root's, so a clone below a directory of mode 0700
 *    (/root) works, and PostgreSQL has no privileges beyond root's files;
 * 2. another user with CAP_DAC_OVERRIDE, which can also enter such a directory (a container that forbids namespaces);
 * 3. another user, who must be able to reach the files.
 */
export function chooseAccount(): Account {
  if (process.getuid?.() !== 0) return { prefix: [], spawn: {} };
  const { uid, gid } = serviceUser();
  const namespace = ["unshare", "--user", `--map-user=${uid}`, `--map-group=${gid}`, "--"];
  if (works(namespace)) return { prefix: namespace, spawn: {}, owner: { uid: 0, gid: 0 } };
  // Without that security bit, access(2) ignores the capability, and initdb uses access(2) to find its programs.
  const bit = "--securebits=+no_setuid_fixup";
  const capability = ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", bit];
  capability.push("--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--");
  if (works(capability)) return { prefix: capability, spawn: {}, owner: { uid, gid } };
  return { prefix: [], spawn: { uid, gid }, owner: { uid, gid } };
}

/** initdb looks up its user, so it must exist: `postgres` if possible, else `nobody`. */
function serviceUser(): { uid: number; gid: number } {
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const name of ["postgres", "nobody"]) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(":") ?? [];
    if (uid && gid && Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new EmbeddedPostgresError(
    "PostgreSQL does not run as root and there is no user `postgres` or `nobody`: start svc as another user, or set SVC_DATABASE_URL",
  );
}

function works([command, ...args]: string[]): boolean {
  return spawnSync(command!, [...args, "true"], { stdio: "ignore" }).status === 0;
}

/**
 * Makes the account the owner of `directory` and everything below it. Skips a directory that already has the right
 * owner.
 */
export async function handOver(directory: string, { owner }: Account): Promise<void> {
  if (!owner || (await lstat(directory)).uid === owner.uid) return;
  for (const entry of await readdir(directory, { recursive: true })) {
    await lchown(join(directory, entry), owner.uid, owner.gid);
  }
  // Last, so that an interrupted walk is repeated.
  await lchown(directory, owner.uid, owner.gid);
}

/** @throws EmbeddedPostgresError when the account (way 3 above) cannot reach `paths` */
export function assertReachable(account: Account, paths: string[]): void {
  if (account.spawn.uid === undefined) return;
  const blocked = paths.find(
    (path) => spawnSync("test", ["-r", path], { ...account.spawn, stdio: "ignore" }).status !== 0,
  );
  if (!blocked) return;
  throw new EmbeddedPostgresError(
    `PostgreSQL does not run as root, and user number ${account.spawn.uid} cannot reach ${blocked}: start svc as another user, move it out of directories that only root may enter, or set SVC_DATABASE_URL`,
  );
}
