import { entryName } from "../../../core/incident/words.ts";
import { defineCommand } from "../../command.ts";
import { confirmByName } from "../../confirm.ts";
import { clientArgs, incidentArg, redactionArgs } from "../../incident/args.ts";
import { aboutEntry, entryArg, entryPath, parseEntry, readEntry } from "../../incident/entry.ts";
import { IncidentClient, type TimelineEvent } from "../../incident/incident.ts";
import { done } from "../../incident/write.ts";
import { optionText } from "../../incident/written_text.ts";
import { printable } from "../../text.ts";

interface Redaction {
  event: TimelineEvent;
  /** Slugs of plugins. */
  received_by: string[];
  cited_by: { id: number; name: string }[];
  notice: string;
}

export default defineCommand({
  summary: "Permanently remove a text, such as a password (admins)",
  args: {
    ...entryArg,
    ...redactionArgs,
    ...incidentArg,
    ...clientArgs,
  },
  examples: ['svc incident redact e1042 --reason "A password of db-2"'],
  notes: [
    "It removes the text and all its earlier versions from the database. The edit of a description or resolution has a name, too, by which the earlier text is removed. It prints which plugins were sent the text, and which documents may have its words: remove them there, too. Existing backups still hold it. If it was a secret, replace that.",
  ],
  async run({ entry, reason, incident: typed, yes, json }, io) {
    const id = parseEntry(entry);
    await IncidentClient.within(io, async (client) => {
      const incident = await client.resolve(typed);
      const seen = await readEntry(client, incident, id, { orEdit: true });
      const what = `This removes ${aboutEntry(seen, incident, io)}. Its earlier texts are removed with it, and it cannot be undone.`;
      await confirmByName(io, what, entryName(id), yes);
      const path = `${entryPath(incident, id)}/redact`;
      const { event, received_by, cited_by, notice } = await client.post<Redaction>(path, {
        reason: await optionText(io, reason, "reason"),
      });
      done(io, incident, json, { event, received_by, cited_by, notice });
      for (const slug of received_by)
        io.stderr.write(`The plugin ${printable(slug, 80)} was sent the text: remove it there, too\n`);
      for (const { id, name } of cited_by)
        io.stderr.write(
          `${printable(name, 80)} may have its words: remove them with svc incident doc edit ${id}, then redact each version that had them: svc incident doc redact ${id} --version N\n`,
        );
      io.stderr.write(`${printable(notice, 200)}\n`);
    });
  },
});
