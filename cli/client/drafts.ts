import * as fs from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { ConfigurationError } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";

// Texts that people wrote and that the server does not have yet. A draft carries the Idempotency-Key of its request in
// its name, so that sending it again cannot send it twice.

/** `$XDG_STATE_HOME/svc/drafts`; only its owner can read it. */
export function draftDirectory(env: Environment): string {
  const xdg = env.XDG_STATE_HOME;
  const state = xdg && isAbsolute(xdg) ? xdg : join(env.HOME || homedir(), ".local", "state");
  return join(state, "svc", "drafts");
}

export interface Draft {
  path: string;
  key: string;
}

/** Writes a new draft. `kind` says what it is (`note`, `report`) and begins the name of the file. */
export function writeDraft(
  env: Environment,
  kind: string,
  text: string,
  extension: "md" | "json",
  key: string = crypto.randomUUID(),
): Draft {
  const directory = draftDirectory(env);
  const path = join(directory, `${kind}-${key}.${extension}`);
  try {
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    const descriptor = fs.openSync(path, "w", 0o600);
    try {
      fs.writeFileSync(descriptor, text);
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigurationError([`cannot write ${path} (${code})`], { cause: error });
  }
  return { path, key };
}

/** The key in the name of a draft; undefined for other files. */
export function draftKey(env: Environment, path: string): string | undefined {
  if (dirname(resolve(path)) !== draftDirectory(env)) return undefined;
  return /^[a-z]+-([0-9a-f-]{36})\.(?:md|json)$/.exec(basename(path))?.[1];
}

/** Removes a draft that has been sent; leaves other files alone. */
export function removeDraft(env: Environment, path: string): void {
  if (draftKey(env, path) !== undefined) fs.rmSync(path, { force: true });
}
