import * as fs from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { ConfigurationError } from "../../platform/errors.ts";
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

/** Holds the text that the user saw when they wrote a draft that replaces it. */
function basePath(env: Environment, path: string): string {
  const directory = dirname(resolve(path));
  return isTemporary(env, directory)
    ? join(directory, "base")
    : join(stateDirectory(env), "draft-bases", basename(path));
}

/** The text that a draft replaces, as the user saw it; undefined if it replaces none, or was kept before it was read. */
export function baseOf(env: Environment, path: string): string | undefined {
  try {
    return fs.readFileSync(basePath(env, path), "utf8");
  } catch {
    return undefined;
  }
}

/** Writes all of a draft, and its base. The base comes first: without it, sending the draft would undo other changes. */
export function rewriteDraft(env: Environment, path: string, text: string, base?: string): void {
  if (base !== undefined) {
    fs.mkdirSync(dirname(basePath(env, path)), { recursive: true, mode: 0o700 });
    writePrivately(basePath(env, path), base);
  }
  writePrivately(path, text);
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

/** Removes what was kept about a draft: its command and its base. */
function forget(env: Environment, path: string): void {
  for (const file of [commandPath(env, path), basePath(env, path)]) {
    try {
      fs.rmSync(file, { force: true });
    } catch {
      // It could not be written either.
    }
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
 * @param base the text that it replaces, as the user saw it
 * @throws ConfigurationError if that is not possible either
 */
export function writeDraft(
  env: Environment,
  kind: string,
  text: string,
  extension: "md" | "json",
  key: string = crypto.randomUUID(),
  base?: string,
): Draft {
  const directory = draftDirectory(env);
  const name = `${kind}-${key}.${extension}`;
  try {
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    const path = join(directory, name);
    rewriteDraft(env, path, text, base);
    return { path, key };
  } catch (error) {
    const path = writeTemporary(env, name, text, base);
    if (path !== undefined) return { path, key };
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigurationError([`cannot write ${join(directory, name)} (${code})`], { cause: error });
  }
}

const temporaryName = "svc-draft-";

function writeTemporary(env: Environment, name: string, text: string, base?: string): string | undefined {
  let directory: string | undefined;
  try {
    directory = fs.mkdtempSync(join(temporaryRoot(env), temporaryName));
    const path = join(directory, name);
    rewriteDraft(env, path, text, base);
    return path;
  } catch {
    if (directory !== undefined) fs.rmSync(directory, { recursive: true, force: true });
    return undefined;
  }
}

function temporaryRoot(env: Environment): string {
  return resolve(env.TMPDIR || tmpdir());
}

/** The key in the name of a draft; undefined for other files. */
export function draftKey(env: Environment, path: string): string | undefined {
  const directory = dirname(resolve(path));
  if (directory !== draftDirectory(env) && !isTemporary(env, directory)) return undefined;
  return /^[a-z]+-([0-9a-f-]{36})\.(?:md|json)$/.exec(basename(path))?.[1];
}

/** What a draft is: `resolution`; undefined for other files. */
export function draftKind(env: Environment, path: string): string | undefined {
  return draftKey(env, path) && basename(path).split("-")[0];
}

function isTemporary(env: Environment, directory: string): boolean {
  return dirname(directory) === temporaryRoot(env) && basename(directory).startsWith(temporaryName);
}

/** Removes a draft that has been sent; leaves other files alone. */
export function removeDraft(env: Environment, path: string): void {
  if (draftKey(env, path) === undefined) return;
  const directory = dirname(resolve(path));
  forget(env, path);
  fs.rmSync(isTemporary(env, directory) ? directory : path, { recursive: true, force: true });
}
