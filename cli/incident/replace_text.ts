import { Conflict, InvalidInput } from "../../platform/errors.ts";
import { ExplainedConflict } from "../errors.ts";
import type { Io } from "../io.ts";
import { difference } from "./difference.ts";
import { rewriteDraft, writeDraft } from "./drafts.ts";
import { editKept } from "./editor.ts";
import { markerLine, mergeTexts } from "./merge.ts";
import { sending, type Written } from "./write.ts";

/** A record on the server, one text of which is replaced. */
export interface ReplacedText<T, R> {
  /** What the text is called: `The text of document 12`. */
  label: string;
  textOf(record: T): string;
  /** @throws Conflict also if the record has changed since `now` */
  put(text: string, now: T): Promise<R>;
  refetch(): Promise<T>;
}

const attempts = 10;

/**
 * Sends a text that replaces another one, as `sending` does. If somebody else has changed that one since the user saw it
 * (`written.base`), both changes are merged. Where both changed the same lines, the editor opens with both versions;
 * without a terminal, nothing is saved, and the draft then has both.
 *
 * @param now the record as it was read last
 * @throws InvalidInput if the text still has both versions of a line
 * @throws ExplainedConflict without a terminal
 */
export async function replaceText<T extends { version: unknown }, R>(
  io: Io,
  what: string,
  written: Written,
  again: string,
  now: T,
  record: ReplacedText<T, R>,
): Promise<R> {
  return sending(io, what, written, again, async () => {
    let current = now;
    for (let attempt = 1; ; attempt += 1) {
      const theirs = record.textOf(current);
      refuseMarkers(written, theirs);
      await mergeTheirs(io, what, written, theirs, record.label);
      try {
        return await record.put(written.text, current);
      } catch (error) {
        if (!(error instanceof Conflict) || attempt === attempts) throw error;
        const { version } = current;
        current = await record.refetch();
        // Refused for another reason.
        if (current.version === version) throw error;
      }
    }
  });
}

/** Somebody may have saved such a line on purpose, in a text about git. */
function refuseMarkers({ text }: Written, theirs: string): void {
  const line = markerLine(text);
  if (line === undefined || markerLine(theirs) !== undefined) return;
  throw new InvalidInput(
    "text",
    `line ${line} of your text is still the marker of a conflict: keep what you want there, and remove the markers; nothing was saved`,
  );
}

/** Makes `written` a text that may replace `theirs`. */
async function mergeTheirs(
  io: Io,
  what: string,
  written: Written,
  theirs: string,
  label: string,
): Promise<void> {
  const { base = theirs, text: yours } = written;
  written.base = theirs;
  if ([base, yours].some((text) => text.trimEnd() === theirs.trimEnd())) return;
  const { text, conflicts, preferred } = await mergeTexts(base, theirs, yours);
  written.text = text;
  if (written.path !== undefined) rewriteDraft(io.env, written.path, text, theirs);
  const changed = written.isUnseen
    ? `${label} may have changed since your text was kept`
    : `${label} has been changed by somebody else in the meantime`;
  if (conflicts === 0) {
    io.stderr.write(`${changed}: their changes and yours were merged.\n`);
    return;
  }
  if (!io.canAsk())
    throw new ExplainedConflict(
      `${changed}; nothing was saved.`,
      'Your text now has both versions where both of you changed it, between "<<<<<<< yours" and ">>>>>>> theirs": edit it first.',
      await difference(theirs, preferred),
    );
  written.path ??= writeDraft(io.env, what, text, "md", written.key, theirs).path;
  io.stderr.write(`${changed}: your editor opens with both versions where both of you changed it.\n`);
  written.text = await editKept(io, written.path, text, theirs);
  refuseMarkers(written, theirs);
}
