import * as fs from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";
import { ConfigurationError, Unavailable } from "../../platform/errors.ts";
import { sha256Hex } from "../../platform/secret.ts";
import type { Environment } from "../../platform/variable.ts";

// The credentials, and the keys and certificates next to them.

/** `$XDG_CONFIG_HOME/svc/credentials.json`. A relative XDG_CONFIG_HOME counts as not set (XDG base directories). */
export function credentialsPath(env: Environment): string {
  const xdg = env.XDG_CONFIG_HOME;
  const config = xdg && isAbsolute(xdg) ? xdg : join(env.HOME || homedir(), ".config");
  return join(config, "svc", "credentials.json");
}

/**
 * A separate directory for each server, named by its host, and by a digest if the address contains more than the host. The
 * digest separates addresses that differ only in scheme, case, or characters that are unsuitable for file names.
 */
export function privateDirectory(env: Environment, base: string, kind: "ssh" | "x509" | "mtls"): string {
  const { host, pathname } = new URL(base);
  const isHost = base === `https://${host}` && /^[a-z0-9.-]+$/.test(host);
  const readable = `${host}${pathname.replace(/\/$/, "")}`.replace(/[^a-zA-Z0-9.-]+/g, "_");
  const digest = sha256Hex(base).slice(0, 12);
  return join(dirname(credentialsPath(env)), kind, isHost ? host : `${readable}_${digest}`);
}

/** Creates a directory, and its parents up to that of the credentials, for the owner only. */
export function makePrivateDirectory(env: Environment, directory: string): void {
  const top = dirname(credentialsPath(env));
  fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (let at = directory; at.length > top.length; at = dirname(at)) fs.chmodSync(at, 0o700);
}

/** Replaces a file that only its owner can read. Afterwards it is the old one or the new one, also on a full disk. */
export function writePrivately(path: string, text: string): void {
  const temporary = join(dirname(path), `.${basename(path)}.${crypto.randomUUID()}.tmp`);
  try {
    fs.writeFileSync(temporary, text, { mode: 0o600, flag: "wx", flush: true });
    fs.renameSync(temporary, path);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
}

/** @throws ConfigurationError if the file system refuses */
export function storing<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    const { code = "failed" } = error as NodeJS.ErrnoException;
    throw new ConfigurationError([`${path}: cannot be written (${code})`], { cause: error });
  }
}

/** Runs `work` on the keychain; a machine without one (a server, a container) gets a specific error. */
export async function fromKeychain<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Unavailable("this machine has no keychain that svc can use; sign in without --keychain", {
      cause: error,
    });
  }
}
