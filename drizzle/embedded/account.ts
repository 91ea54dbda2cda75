import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { lchown, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { EmbeddedPostgresError } from "./error.ts";

/** How PostgreSQL's programs are started so that they do not run as root, which they refuse. */
export interface Account {
  /** Goes in front of each command. */
  prefix: string[];
  /** For `spawn`, where nothing in front of the command changes the user. */
  spawn: { uid?: number; gid?: number };
  /** Who must own the data directory, as this process sees it; undefined: it is ours anyway. */
  owner?: { uid: number; gid: number };
}

/**
 * A normal user just starts them. Root has three ways, best first:
 * 1. a user namespace in which root has another number. Files stay root's, so a clone below a directory of mode 0700
 *    (/root) works, and PostgreSQL has no power outside of what root's files are;
 * 2. another user with CAP_DAC_OVERRIDE, which passes such a directory too (a container that forbids namespaces);
 * 3. another user, who must be able to reach the files.
 */
export function chooseAccount(): Account {
  if (process.getuid?.() !== 0) return { prefix: [], spawn: {} };
  const { uid, gid } = serviceUser();
  const namespace = ["unshare", "--user", `--map-user=${uid}`, `--map-group=${gid}`, "--"];
  if (works(namespace)) return { prefix: namespace, spawn: {}, owner: { uid: 0, gid: 0 } };
  // Without that security bit access(2), by which initdb looks for its programs, takes no notice of the capability.
  const bit = "--securebits=+no_setuid_fixup";
  const capability = ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", bit];
  capability.push("--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--");
  if (works(capability)) return { prefix: capability, spawn: {}, owner: { uid, gid } };
  return { prefix: [], spawn: { uid, gid }, owner: { uid, gid } };
}

/** initdb looks its user up, so it must be one that exists: `postgres` where there is one, else `nobody`. */
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

/** Gives `directory` and all below it to the account. A directory that has the right owner is not walked. */
export async function handOver(directory: string, { owner }: Account): Promise<void> {
  if (!owner || (await lstat(directory)).uid === owner.uid) return;
  for (const entry of await readdir(directory, { recursive: true })) {
    await lchown(join(directory, entry), owner.uid, owner.gid);
  }
  // Last, so that a walk that was cut short is walked again.
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
