import { entryName, removedText, shortName } from "../../../core/incident/words.ts";
import { defineCommand } from "../../command.ts";
import { clientArgs, incidentArg } from "../../incident/args.ts";
import { entryArg, entryPath, parseEntry, readEntry } from "../../incident/entry.ts";
import { IncidentClient } from "../../incident/incident.ts";
import { type ReportParts, reportText } from "../../incident/report_parts.ts";
import { stylesOf, whenText } from "../../incident/text.ts";
import type { Io } from "../../io.ts";
import { widthOf, wrapped } from "../../table.ts";
import { printableLines, printJson } from "../../text.ts";

/** An earlier text: a description, or the parts of a report. */
type Revision = { version: number; author: string; at: string; description?: string } & Partial<ReportParts>;

export default defineCommand({
  summary: "Show the earlier texts of a note, a report or a message",
  args: { ...entryArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident history e1042"],
  notes: ["Only for admins. The current text comes last. A redacted text is in no version any more."],
  async run({ entry, incident: typed, json }, io) {
    const id = parseEntry(entry);
    const { seen, items } = await IncidentClient.within(io, async (client) => {
      const incident = await client.resolve(typed);
      const path = `${entryPath(incident, id)}/revisions/`;
      return {
        seen: await readEntry(client, incident, id),
        items: await client.list<Revision>(path, { sort: "version" }, Number.POSITIVE_INFINITY),
      };
    });
    if (json) return printJson(io, { items });
    const { event, version, text } = seen;
    if (items.length === 0) {
      io.stderr.write(`${entryName(id)} was never changed.\n`);
      return;
    }
    const { edited_by, edited_at, actor, at } = event;
    const now = removedText(event, (instant) => whenText(instant, io)) ?? text;
    const current = { version, author: edited_by ?? actor, at: edited_at ?? at, description: now };
    io.stdout.write([...items, current].map((one) => revisionText(one, io)).join("\n"));
  },
});

function revisionText({ version, author, at, ...texts }: Revision, io: Io): string {
  const { description, conditions = "", actions = "", needs = "" } = texts;
  const width = widthOf(io.stdout);
  const lines = printableLines(description ?? reportText({ conditions, actions, needs }))
    .flatMap((line) => wrapped(line, width === undefined ? undefined : Math.max(10, width - 2)))
    .map((line) => `  ${line}`.trimEnd());
  const header = `${stylesOf(io)(`Version ${version}`, "bold")}, ${shortName(author)}, ${whenText(at, io)}`;
  return `${[header, ...lines].join("\n")}\n`;
}
