import { InvalidInput } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { clientArgs, idDashArgs, textOption } from "../../incident/args.ts";
import { removeDraft } from "../../incident/drafts.ts";
import { editDraft } from "../../incident/editor.ts";
import { IncidentClient, type IncidentDetail, type StatusReport } from "../../incident/incident.ts";
import { nameOf } from "../../incident/people.ts";
import { checkedReport, headings, parseReport } from "../../incident/report_parts.ts";
import { templateOf } from "../../incident/template.ts";
import {
  againLine,
  done,
  fromFile,
  idOf,
  option,
  sending,
  type Written,
  withStdin,
  wordAndDash,
} from "../../incident/write.ts";
import { readText } from "../../incident/written_text.ts";
import type { Io } from "../../io.ts";
import { printable, printableLines } from "../../text.ts";
import { localTime } from "../../when.ts";

export default defineCommand({
  summary: "Write a status report",
  args: {
    ...idDashArgs,
    editor: {
      type: "boolean",
      short: "e",
      description: "Write it in your editor (the default on a terminal)",
    },
    conditions: textOption("c", "Current conditions"),
    actions: textOption("a", "Current actions"),
    needs: textOption("n", "Current needs"),
    file: {
      type: "string",
      short: "F",
      metavar: "FILE",
      description: "Read it from FILE, or - for stdin, with the headings # Conditions, # Actions and # Needs",
    },
    ...clientArgs,
  },
  examples: [
    "svc incident update -e",
    'svc incident update INC-44 -c "Half of the orders fail" -a "Rolling back"',
  ],
  notes: [
    "The editor (VISUAL, or else EDITOR) opens with a heading for each part, and the last report in a comment. If the report cannot be sent, svc keeps it and prints how to send it again.",
  ],
  async run(options, io) {
    const { conditions, actions, needs, editor, json } = options;
    const { word, file } = wordAndDash(options.id, options.dash, options);
    const id = idOf({ ...options, id: word });
    const typed = Object.entries({ conditions, actions, needs }).filter(([, text]) => text !== undefined);
    if ([typed.length > 0, file !== undefined, editor === true].filter(Boolean).length > 1)
      throw new UsageError("give either --conditions, --actions and --needs, or -, or --file, or --editor");
    if (typed.length > 0 && conditions === undefined) throw new UsageError("missing option: --conditions");
    if (typed.length === 0 && file === undefined && !editor && !io.canAsk())
      throw new UsageError("missing option: --conditions (or -, --file or --editor)");
    const [piped, ...more] = typed.filter(([, text]) => text === "-");
    if (more.length > 0) throw new UsageError("only one text can come from stdin");

    const again = (incident = id) => againLine(io, ["update", incident]);
    const others = typed.filter((one) => one !== piped).flatMap(([name, text]) => option(`--${name}`, text));
    const againPiped = () => againLine(io, ["update", id, ...others, `--${piped![0]}`, "-"]);
    const source = { file: piped ? "-" : file };
    await withStdin(io, "update", source, piped ? againPiped() : again(), async (io) => {
      const { incident, last } = await IncidentClient.within(io, async (client) => {
        const incident = await client.resolve(id);
        const path = `/incidents/${incident.id}/reports/`;
        return { incident, last: (await client.list<StatusReport>(path, {}, 1))[0] };
      });
      const written = await writtenReport(io, { ...options, file }, incident, last, again(incident.name));
      const report = await sending(io, "update", written, again(incident.name), async () => {
        const body = written.typed ? checkedReport(written.typed) : parseReport(written.text);
        return IncidentClient.within(io, (client) =>
          client.post<StatusReport>(`/incidents/${incident.id}/reports`, body, { key: written.key }),
        );
      });
      done(io, incident, json, report);
    });
  },
});

/** The report in the form of the template, in which it is also kept. */
async function writtenReport(
  io: Io,
  {
    conditions,
    actions = "",
    needs = "",
    file,
  }: { conditions?: string; actions?: string; needs?: string; file?: string },
  incident: IncidentDetail,
  last: StatusReport | undefined,
  again: string,
): Promise<Written & { typed?: string[] }> {
  if (file !== undefined) {
    const written = await fromFile(io, file, "report");
    parseReport(written.text);
    return written;
  }
  if (conditions !== undefined) {
    const values: string[] = [];
    for (const text of [conditions, actions, needs])
      values.push(text === "-" ? await readText(io, "-", "report") : text);
    const text = templateOf(
      [],
      headings.map((heading, at) => [heading, values[at]!]),
    );
    // A line of a text may look like a heading.
    return { text, key: crypto.randomUUID(), typed: values };
  }
  const template = templateOf(
    commentOf(incident, last),
    headings.map((heading) => [heading, ""]),
  );
  const { text, draft } = await editDraft(io, "update", template, again);
  if (text === template) {
    removeDraft(io.env, draft.path);
    throw new InvalidInput("report", "the report is empty: nothing was sent");
  }
  return { ...draft, text };
}

function commentOf({ name, title }: IncidentDetail, last: StatusReport | undefined): string[] {
  const about = [
    `A status report on ${name}: ${printable(title)}`,
    "Write under each heading: the current state, what is being done, what is needed.",
    "This comment is not sent.",
  ];
  if (last === undefined) return about;
  const section = (heading: string, text: string) =>
    text.trim() === "" ? [] : [`${heading}:`, ...printableLines(text).map((line) => `  ${line}`)];
  return [
    ...about,
    "",
    `The last report, by ${nameOf(last.author)} at ${localTime(new Date(last.created_at))}:`,
    ...section("Conditions", last.conditions),
    ...section("Actions", last.actions),
    ...section("Needs", last.needs),
  ];
}
