import { ConfigurationError, Conflict, InvalidInput } from "../../platform/errors.ts";
import { ExplainedConflict, UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { printable, printableLines, printJson, shellWord } from "../text.ts";
import { baseOf, type Draft, draftKey, keptLine, removeDraft, writeDraft } from "./drafts.ts";
import { editDraft } from "./editor.ts";
import { hasFormOfId } from "./id.ts";
import { type Incident, IncidentClient, type IncidentDetail, printIncident } from "./incident.ts";
import { repeatLine } from "./put_change.ts";
import { commentText, withoutComment } from "./template.ts";
import { checkText, decodeText, largestText, readText } from "./written_text.ts";

/** The options of a command that takes words, of which the first may name the incident. */
export interface WordOptions {
  words?: readonly string[];
  incident?: string;
  json?: boolean;
}

/** The options of a command with `[ID]`. */
export interface IdOptions {
  id?: string;
  incident?: string;
  json?: boolean;
}

/** Where the text of a command comes from. */
export interface TextSource {
  /** The text on the command line, or `-` for stdin. */
  text?: string;
  file?: string;
  editor?: boolean;
}

/** A text, with the key that keeps it from being sent twice. */
export interface Written {
  text: string;
  key: string;
  /** The file that holds it already. */
  path?: string;
  /** The text that it replaces, as the user saw it. */
  base?: string;
  /** Whether it was kept before the text that it replaces was read. */
  isUnseen?: boolean;
  /** Whether it came from stdin, which cannot be read again. */
  isPiped?: boolean;
}

/**
 * Splits the words of a command line into the incident, if the first word has the form of its ID, and the others.
 *
 * @param command `note TEXT`: the command, and the placeholder of the other words
 * @param isComplete whether the command needs no other word, because its text comes from a file, for example
 * @throws UsageError if the only word may be either
 */
export function splitWords({ words = [], incident }: WordOptions, command: string, isComplete = false) {
  const [first, ...others] = words;
  if (incident !== undefined || first === undefined || !hasFormOfId(first)) return { incident, words };
  if (others.length > 0 || isComplete) return { incident: first, words: others };
  const at = command.lastIndexOf(" ");
  const [start, what] = [`svc incident ${command.slice(0, at)}`, command.slice(at + 1)];
  const word = shellWord(printable(first, 100));
  throw new UsageError(
    `${word} may be the incident or the ${what}: write ${start} ${word} ${what}, or ${start} -i ID ${word}`,
  );
}

/**
 * Takes a last word `-` from the words: it stands for `--file -`, a text from stdin.
 *
 * @throws UsageError if it comes first of several, or the text also comes from elsewhere
 */
export function takeDash({ words = [], file, editor }: { words?: readonly string[] } & TextSource) {
  // As a text, it would replace the one that waits on stdin.
  if (words[0] === "-" && words.length > 1) throw new UsageError("- is a text from stdin, and comes last");
  if (words.at(-1) !== "-") return { words, file };
  if (file !== undefined || editor) throw new UsageError("give only one of -, --file and --editor");
  return { words: words.slice(0, -1), file: "-" };
}

/** The word of `[ID] [-]`, and the file of the text. @throws UsageError */
export function wordAndDash(word: string | undefined, dash: string | undefined, source: TextSource) {
  const given = [word, dash].filter((one) => one !== undefined);
  const { words, file } = takeDash({ ...source, words: given });
  if (words.length > 1) throw new UsageError(`unexpected argument: ${words[1]}`);
  return { word: words[0], file };
}

/** The incident of `[ID]` or `-i ID`. @throws UsageError for both */
export function idOf({ id, incident }: IdOptions): string | undefined {
  if (id !== undefined && incident !== undefined) throw new UsageError("give either ID or --incident");
  return id ?? incident;
}

/** The incident and the source of the text in `[ID] TEXT`, `[ID] -`, `[ID] -F FILE` and `[ID] -e`. @throws UsageError */
export function incidentAndText(options: WordOptions & TextSource, command: string) {
  const { editor } = options;
  const { words: given, file } = takeDash(options);
  const isComplete = file !== undefined || editor === true;
  const { incident, words } = splitWords({ ...options, words: given }, command, isComplete);
  return { incident, source: sourceOf(words.length === 0 ? undefined : words.join(" "), file, editor) };
}

/**
 * Returns where the text comes from: the command line, where `-` stands for stdin, a file or the editor.
 *
 * @param name the placeholder of the text in the help
 * @throws UsageError if it comes from several places
 */
export function sourceOf(
  text: string | undefined,
  file: string | undefined,
  editor: boolean | undefined,
  name = "TEXT",
): TextSource {
  const places = [text !== undefined, file !== undefined, editor === true];
  if (places.filter(Boolean).length > 1)
    throw new UsageError(`give only one of ${name}, -, --file and --editor`);
  return { text, file: text === "-" ? "-" : file, editor };
}

/**
 * Reads the text that a command sends. On a terminal, without any source, the editor opens.
 *
 * @param what the kind of text, for errors and for the name of a draft: `note`
 * @param again of `againLine`
 * @param base the text that it replaces
 * @throws UsageError without a source
 * @throws InvalidInput for an empty one, one that is too long, and binary data
 */
export async function writtenText(
  io: Io,
  what: string,
  source: TextSource,
  incident: Pick<Incident, "name" | "title">,
  again: string,
  base?: string,
): Promise<Written> {
  if (source.file !== undefined) {
    const written = await fromFile(io, source.file, what, base);
    return { ...written, text: checkText(withoutComment(written.text), what) };
  }
  if (source.text !== undefined)
    return { text: checkText(source.text, what), key: crypto.randomUUID(), base };
  if (!source.editor && !io.canAsk())
    throw new UsageError("missing argument: TEXT (or -, --file or --editor)");
  const { name, title } = incident;
  const template = commentText([`Your ${what} on ${name}: ${title}`, "This comment is not sent."]);
  const { text, draft } = await editDraft(io, what, `${template}\n`, again, base);
  return { ...checked(io, withoutComment(text), what, draft, again), base };
}

/**
 * Reads the text of a file, or of stdin for `-`. A draft is sent with its key, and removed afterwards.
 *
 * @param base the text that a new text replaces. A draft has its own, or replaces one that nobody saw
 * @param isNamed whether the user named the base, also for a draft
 */
export async function fromFile(
  io: Io,
  file: string,
  what: string,
  base?: string,
  isNamed = false,
): Promise<Written> {
  const text = await readText(io, file, what);
  const key = file === "-" ? undefined : draftKey(io.env, file);
  if (key === undefined) return { text, key: crypto.randomUUID(), base, isPiped: file === "-" };
  const seen = baseOf(io.env, file) ?? (isNamed ? base : undefined);
  if (seen !== undefined || base === undefined) return { text, key, path: file, base: seen };
  return { text, key, path: file, base: "", isUnseen: true };
}

/** Checks the text of the editor. The draft of an empty text is removed; with any other fault, it stays. */
export function checked(
  io: Io,
  text: string,
  what: string,
  draft: Draft,
  again: string,
  limit?: number,
): Written {
  if (text.trim() === "") removeDraft(io.env, draft.path);
  try {
    return { ...draft, text: checkText(text, what, limit) };
  } catch (error) {
    if (text.trim() !== "") io.stderr.write(`${keptLine(io.env, draft.path, again)}\n`);
    throw error;
  }
}

/** Returns the command line that sends a text again, up to the file. */
export function againLine(io: Io, words: readonly (string | undefined)[]): string {
  const all = ["svc", "incident", ...words, ...option("--server", io.server)];
  if (io.certificate) all.push("--certificate");
  return all
    .filter((word) => word !== undefined)
    .map(shellWord)
    .join(" ");
}

/** An option of `againLine`, if it was given. */
export function option(name: string, value: string | undefined): string[] {
  return value === undefined ? [] : [name, value];
}

/**
 * Sends a text, and removes its draft. If that fails, or a signal ends the process, it keeps the text and prints the command
 * that sends it again.
 *
 * @param again of `againLine`
 * @param isLast whether the text is then sent; the draft stays otherwise
 */
export async function sending<T>(
  io: Io,
  what: string,
  written: Written,
  again: string,
  work: () => Promise<T>,
  isLast = true,
): Promise<T> {
  // A conflict changes the text and the path.
  const keptText = () => {
    written.path ??= keep(io, what, written);
    return written.path && keptLine(io.env, written.path, again);
  };
  const keepText = () => {
    const line = keptText();
    if (line) io.stderr.write(`${line}\n`);
  };
  const stopListening = io.onExit(keepText);
  try {
    const result = await work();
    if (written.path !== undefined && isLast) removeDraft(io.env, written.path);
    return result;
  } catch (error) {
    if (error instanceof Conflict) throw withNext(error, keptText());
    const isFault = error instanceof InvalidInput || error instanceof UsageError;
    if (written.path !== undefined || written.isPiped || !isFault) keepText();
    throw error;
  } finally {
    stopListening();
  }
}

/** A conflict that ends with the next command. */
export function withNext(error: Conflict, next: string | undefined): Conflict {
  if (next === undefined) return error;
  if (!(error instanceof ExplainedConflict))
    return new ExplainedConflict(error.detail, next, [], { cause: error });
  error.next = error.next === repeatLine ? next : `${error.next}\n${next}`;
  return error;
}

/**
 * Runs a command whose text may come from stdin, and reads that first. If the command fails before it uses the text, or a
 * signal ends it, the text is kept, because stdin cannot be read again.
 *
 * @param again as for `sending`
 */
export async function withStdin<T>(
  io: Io,
  what: string,
  source: Pick<TextSource, "file">,
  again: string,
  work: (io: Io) => Promise<T>,
): Promise<T> {
  if (source.file !== "-") return work(io);
  const bytes = await io.readStdin(largestText);
  const keepText = () => keepStdin(io, what, bytes, again);
  const stopListening = io.onExit(keepText);
  let isTaken = false;
  const readStdin = async () => {
    isTaken = true;
    stopListening();
    return bytes;
  };
  try {
    return await work({ ...io, readStdin });
  } catch (error) {
    if (!isTaken) keepText();
    throw error;
  } finally {
    stopListening();
  }
}

function keepStdin(io: Io, what: string, bytes: Uint8Array, again: string): void {
  let text: string;
  try {
    text = checkText(decodeText(bytes, "stdin", what), what, largestText);
  } catch {
    // Nothing that could be sent.
    return;
  }
  const path = keep(io, what, { text, key: crypto.randomUUID() });
  if (path) io.stderr.write(`${keptLine(io.env, path, again)}\n`);
}

/** Stores the text, and returns its file. If that fails, for example on a full disk, it prints the text. */
function keep(io: Io, what: string, { text, key, base }: Written): string | undefined {
  try {
    return writeDraft(io.env, what, `${text}\n`, "md", key, base).path;
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    io.stderr.write(`Your text could not be kept: ${error.detail}. This is it:\n`);
    for (const line of printableLines(text)) io.stderr.write(`${line}\n`);
    return undefined;
  }
}

/** Reads the incident of a command, before the user writes anything. */
export async function incidentOf(io: Io, typed: string | undefined): Promise<IncidentDetail> {
  return IncidentClient.within(io, (client) => client.resolve(typed));
}

/**
 * Changes several things, one after the other. If one fails, it prints the incident and what was done until then.
 *
 * @param did the change, for that message: `were added`
 */
export async function eachInTurn<T, R>(
  io: Io,
  incident: Incident,
  did: string,
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  try {
    for (const item of items) results.push(await work(item));
  } catch (error) {
    if (results.length > 0) {
      printIncident(io, incident);
      io.stderr.write(`Only the first ${results.length} of ${items.length} ${did}.\n`);
    }
    throw error;
  }
  return results;
}

/** Prints the result of a change: the incident on stderr, and the answer for programs. */
export function done(io: Io, incident: Incident, json: boolean | undefined, answer: unknown): void {
  printIncident(io, incident);
  if (json) printJson(io, answer);
}
