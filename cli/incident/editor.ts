import * as fs from "node:fs";
import { constants } from "node:os";
import { ConfigurationError, Unavailable } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import type { Io } from "../io.ts";
import { printable } from "../text.ts";
import { type Draft, keptLine, removeDraft, rewriteDraft, writeDraft } from "./drafts.ts";
import { decodeText } from "./written_text.ts";

/** The user's editor: VISUAL (not on a dumb terminal), else EDITOR, else vi. */
function editorOf(env: Environment): string {
  const visual = env.TERM === "dumb" ? undefined : env.VISUAL?.trim();
  return visual || env.EDITOR?.trim() || "vi";
}

/**
 * Lets the user edit a text in a draft. The text stays in the file until the caller removes it, also when the editor
 * fails or is killed.
 *
 * @param again of `againLine`
 * @throws Unavailable if the editor fails, and prints how to send the text
 */
export async function editDraft(
  io: Io,
  kind: string,
  text: string,
  again: string,
  base?: string,
): Promise<{ text: string; draft: Draft }> {
  const draft = writeDraft(io.env, kind, text, "md", undefined, base);
  const kept = `${keptLine(io.env, draft.path, again)}\n`;
  const { editor, exit } = await openEditor(io, draft.path);
  const bytes = readBack(draft.path);
  const changed = bytes === undefined ? undefined : !Buffer.from(text).equals(bytes);
  if ("code" in exit && exit.code === 0 && bytes !== undefined) {
    try {
      return { text: decodeText(bytes, draft.path, "text"), draft };
    } catch (error) {
      io.stderr.write(kept);
      throw error;
    }
  }
  if (changed) io.stderr.write(kept);
  else removeDraft(io.env, draft.path);
  throw new Unavailable(`${printable(editor, 100)} ${howItEnded(exit)}; nothing was sent`);
}

/**
 * Lets the user edit a draft that is kept.
 *
 * @throws Unavailable if the editor fails
 */
export async function editKept(io: Io, path: string, text: string, base: string): Promise<string> {
  rewriteDraft(io.env, path, text, base);
  const { editor, exit } = await openEditor(io, path);
  const bytes = readBack(path);
  if ("code" in exit && exit.code === 0 && bytes !== undefined) return decodeText(bytes, path, "text");
  throw new Unavailable(`${printable(editor, 100)} ${howItEnded(exit)}; nothing was sent`);
}

async function openEditor(io: Io, path: string) {
  const editor = editorOf(io.env);
  return { editor, exit: await io.runOnTerminal(editor, [path]) };
}

function readBack(path: string): Uint8Array | undefined {
  try {
    return fs.readFileSync(path);
  } catch (error) {
    // The user may have deleted it in the editor.
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new ConfigurationError([`cannot read ${path} (${code})`], { cause: error });
  }
}

function howItEnded(exit: Awaited<ReturnType<Io["runOnTerminal"]>>): string {
  if ("failed" in exit) return `did not start (${exit.failed}); set VISUAL or EDITOR`;
  if ("signal" in exit) return `was killed (${exit.signal})`;
  // As the shell reports it.
  const [signal] = Object.entries(constants.signals).find(([, number]) => exit.code === 128 + number) ?? [];
  if (signal !== undefined) return `was killed (${signal})`;
  if (exit.code === 127) return "was not found; set VISUAL or EDITOR";
  return exit.code === 0 ? "deleted the text" : `failed (exit code ${exit.code})`;
}
