import * as fs from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { ConfigurationError } from "../../platform/errors.ts";
import { sha256Hex } from "../../platform/secret.ts";
import type { Environment } from "../../platform/variable.ts";
import { writePrivately } from "../client/private_file.ts";
import { shellWord } from "../text.ts";

// Texts that people wrote and requests whose answer was lost: the server may not have them yet. The name of a draft
// contains the Idempotency-Key of its request, so that sending it again adds nothing twice.

/** `$XDG_STATE_HOME/svc/drafts`; only its owner can read it. */
export function draftDirectory(env: Environment): string {
  return join(stateDirectory(env), "drafts");
}

function stateDirectory(env: Environment): string {
  const xdg = env.XDG_STATE_HOME;
  const state = xdg && isAbsolute(xdg) ? xdg : join(env.HOME || homedir(), ".local", "state");
  return join(state, "svc");
}

/** Holds the command that sends a draft. */
function commandPath(env: Environment, path: string): string {
  return join(stateDirectory(env), "draft-commands", basename(path));
}

/**
 * Returns the command that sends a draft, and remembers it for `svc incident drafts`.
 *
 * @param again the command line before the file. One that ends with `-` reads stdin
 */
export function sendingCommand(env: Environment, path: string, again: string): string {
  const command = `${again} ${again.endsWith(" -") ? "<" : "-F"} ${shellWord(path)}`;
  const file = commandPath(env, path);
  try {
    fs.mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writePrivately(file, `${command}\n`);
  } catch {
    // The user still sees it now.
  }
  return command;
}

/** `Your text is kept. To send it: svc incident note -i INC-44 -F ...` */
export function keptLine(env: Environment, path: string, again: string): string {
  return `Your text is kept. To send it: ${sendingCommand(env, path, again)}`;
}

/** A draft, as `svc incident drafts` lists it. */
export interface ListedDraft {
  kind: string;
  /** When it was last written. */
  at: string;
  file: string;
  text: string;
  command: string | null;
}

/** The drafts of the user, oldest first. */
export function listDrafts(env: Environment): ListedDraft[] {
  const read = (path: string) => fs.readFileSync(path, "utf8");
  let names: string[];
  try {
    names = fs.readdirSync(draftDirectory(env));
  } catch {
    // There was never one.
    return [];
  }
  const found = names.flatMap((name): ListedDraft[] => {
    const file = join(draftDirectory(env), name);
    if (draftKey(env, file) === undefined) return [];
    const kind = name.slice(0, name.indexOf("-"));
    try {
      const at = fs.statSync(file).mtime.toISOString();
      let command: string | null = null;
      try {
        command = read(commandPath(env, file)).trim();
      } catch {}
      return [{ kind, at, file, text: read(file), command }];
    } catch {
      // Sent in the meantime.
      return [];
    }
  });
  return found.sort((a, b) => a.at.localeCompare(b.at));
}

/** Gives a draft another key. @returns its new path */
export function renameDraft(env: Environment, path: string, from: string, to: string): string {
  const renamed = path.replace(from, to);
  fs.renameSync(path, renamed);
  forgetCommand(env, path);
  return renamed;
}

function forgetCommand(env: Environment, path: string): void {
  try {
    fs.rmSync(commandPath(env, path), { force: true });
  } catch {
    // It could not be written either.
  }
}

export interface Draft {
  path: string;
  key: string;
}

/**
 * Writes a new draft, or all of an old one. `kind` says what it is (`note`, `report`) and begins the name of the file. If
 * the home directory is full or read-only, the draft goes to a temporary directory.
 *
 * @throws ConfigurationError if that is not possible either
 */
export function writeDraft(
  env: Environment,
  kind: string,
  text: string,
  extension: "md" | "json",
  key: string = crypto.randomUUID(),
): Draft {
  const directory = draftDirectory(env);
  const name = `${kind}-${key}.${extension}`;
  try {
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    const path = join(directory, name);
    writePrivately(path, text);
    return { path, key };
  } catch (error) {
    const path = writeTemporary(env, name, text);
    if (path !== undefined) return { path, key };
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigurationError([`cannot write ${join(directory, name)} (${code})`], { cause: error });
  }
}

const temporaryName = "svc-draft-";

function writeTemporary(env: Environment, name: string, text: string): string | undefined {
  let directory: string | undefined;
  try {
    directory = fs.mkdtempSync(join(temporaryRoot(env), temporaryName));
    const path = join(directory, name);
    writePrivately(path, text);
    return path;
  } catch {
    if (directory !== undefined) fs.rmSync(directory, { recursive: true, force: true });
    return undefined;
  }
}

function temporaryRoot(env: Environment): string {
  return resolve(env.TMPDIR || tmpdir());
}

/** Hexadecimal digits of a text's hash in a key. */
const hashDigits = 8;
const hashOf = (text: string) => sha256Hex(text).slice(0, hashDigits);
const hashesOf = (key: string) => key.replaceAll("-", "").slice(-2 * hashDigits);

/**
 * Returns a key that says which two texts the user saw when they wrote theirs: it looks like a UUID of version 8, and
 * ends with their hashes. Without that, sending a draft would undo what others have changed since.
 *
 * @param key the key until now, which is kept for a text that is undefined
 */
export function keyOfSeen(
  [first, second]: readonly (string | undefined)[],
  key: string = crypto.randomUUID(),
): string {
  const until = hashesOf(key);
  const hashes = [
    first === undefined ? until.slice(0, hashDigits) : hashOf(first),
    second === undefined ? until.slice(hashDigits) : hashOf(second),
  ].join("");
  return `${key.slice(0, 14)}8${key.slice(15, 19)}${hashes.slice(0, 4)}-${hashes.slice(4)}`;
}

/** Whether the user saw this text, the first or second of `keyOfSeen`. Undefined if the key does not say. */
export function wasSeen(key: string, text: string, position = 0): boolean | undefined {
  if (key[14] !== "8") return undefined;
  return hashesOf(key).slice(position * hashDigits, (position + 1) * hashDigits) === hashOf(text);
}

/** The key in the name of a draft; undefined for other files. */
export function draftKey(env: Environment, path: string): string | undefined {
  const directory = dirname(resolve(path));
  if (directory !== draftDirectory(env) && !isTemporary(env, directory)) return undefined;
  return /^[a-z]+-([0-9a-f-]{36})\.(?:md|json)$/.exec(basename(path))?.[1];
}

function isTemporary(env: Environment, directory: string): boolean {
  return dirname(directory) === temporaryRoot(env) && basename(directory).startsWith(temporaryName);
}

/** Removes a draft that has been sent; leaves other files alone. */
export function removeDraft(env: Environment, path: string): void {
  if (draftKey(env, path) === undefined) return;
  const directory = dirname(resolve(path));
  forgetCommand(env, path);
  fs.rmSync(isTemporary(env, directory) ? directory : path, { recursive: true, force: true });
}
