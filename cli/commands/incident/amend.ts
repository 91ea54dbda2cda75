import { entryName } from "../../../core/incident/words.ts";
import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { clientArgs, incidentArg, textArgs } from "../../incident/args.ts";
import { removeDraft } from "../../incident/drafts.ts";
import { editDraft } from "../../incident/editor.ts";
import { type EntryWithText, entryPath, parseEntry, readEntry, refuseRemoved } from "../../incident/entry.ts";
import { IncidentClient, type IncidentDetail, type TimelineEvent } from "../../incident/incident.ts";
import { replaceText } from "../../incident/replace_text.ts";
import { parseReport } from "../../incident/report_parts.ts";
import { commentText, withoutComment } from "../../incident/template.ts";
import {
  againLine,
  checked,
  done,
  fromFile,
  option,
  sourceOf,
  type TextSource,
  takeDash,
  type Written,
  withStdin,
} from "../../incident/write.ts";
import { checkText, largestText } from "../../incident/written_text.ts";
import type { Io } from "../../io.ts";

export default defineCommand({
  summary: "Correct a note, a report or a message",
  args: {
    words: {
      type: "positional",
      multiple: true,
      metavar: "ENTRY [TEXT]",
      description:
        "The entry, such as e1042, then its new text, or - for stdin; without a text, your editor opens with the current one",
    },
    ...incidentArg,
    ...textArgs("the new text"),
    ...clientArgs,
  },
  examples: [
    "svc incident amend e1042",
    'svc incident amend -i INC-44 e1042 "The release of 11:45 is the cause"',
  ],
  notes: [
    "You can correct what you wrote, until a day after the incident was closed; admins can correct everything at any time. Everybody sees that it was corrected, by whom and when, and admins what it was before: svc incident history ENTRY.",
    "A status report is corrected in the editor, or from a file with the headings # Conditions, # Actions and # Needs.",
    "If somebody else has corrected it in the meantime, both corrections are merged. Where both of you changed the same lines, your editor opens with both versions. Without a terminal, nothing is saved, and svc keeps both versions in a file.",
  ],
  async run(options, io) {
    const { incident: typed, editor, json } = options;
    const { words, file } = takeDash(options);
    const [word, ...more] = words;
    if (word === undefined) throw new UsageError("missing argument: ENTRY");
    const id = parseEntry(word);
    const source = sourceOf(more.length === 0 ? undefined : more.join(" "), file, editor);
    const again = (incident = typed) => againLine(io, ["amend", ...option("-i", incident), entryName(id)]);
    await withStdin(io, "amend", source, again(), async (io) => {
      const { incident, seen } = await IncidentClient.within(io, async (client) => {
        const incident = await client.resolve(typed);
        return { incident, seen: await readEntry(client, incident, id) };
      });
      refuseRemoved(seen, io);
      const written = await writtenText(io, source, incident, seen, again(incident.name));
      if (written === undefined) {
        io.stderr.write("Nothing was changed.\n");
        return;
      }
      const event = await replaceText<EntryWithText, TimelineEvent>(
        io,
        "amend",
        written,
        again(incident.name),
        seen,
        {
          label: `The text of ${entryName(id)}`,
          textOf: ({ text }) => text,
          put: (text, now) => IncidentClient.within(io, (client) => put(client, incident, now, text)),
          refetch: async () => {
            const now = await IncidentClient.within(io, (client) => readEntry(client, incident, id));
            refuseRemoved(now, io);
            return now;
          },
        },
      );
      done(io, incident, json, event);
    });
  },
});

/** The new text; undefined if the user left it as it was in the editor. */
async function writtenText(
  io: Io,
  { text, file, editor }: TextSource,
  { name }: IncidentDetail,
  { event, text: before, isReport }: EntryWithText,
  again: string,
): Promise<Written | undefined> {
  if (file !== undefined) {
    const written = await fromFile(io, file, "text", before);
    return { ...written, text: withoutComment(written.text) };
  }
  if (text !== undefined) {
    if (!isReport) return { text, key: crypto.randomUUID(), base: before };
    throw new UsageError(
      `${entryName(event.id)} is a status report: correct it in your editor (-e), or with - or --file and the headings # Conditions, # Actions and # Needs`,
    );
  }
  if (!editor && !io.canAsk()) throw new UsageError("missing argument: TEXT (or -, --file or --editor)");
  const comment = commentText([`${entryName(event.id)} of ${name}. This comment is not sent.`]);
  const edited = await editDraft(io, "amend", `${comment}\n${before}\n`, again, before);
  const limit = isReport ? largestText : undefined;
  const written = checked(io, withoutComment(edited.text), "text", edited.draft, again, limit);
  if (written.text !== before.trim()) return { ...written, base: before };
  removeDraft(io.env, edited.draft.path);
  return undefined;
}

/** @throws Conflict if somebody else has corrected it in the meantime */
async function put(
  client: IncidentClient,
  incident: IncidentDetail,
  { event, isReport, version }: EntryWithText,
  text: string,
): Promise<TimelineEvent> {
  const words = isReport ? parseReport(text) : { description: checkText(text, "text") };
  return client.call<TimelineEvent>("PUT", entryPath(incident, event.id), { version, ...words });
}
