import { entryName } from "../../../core/incident/words.ts";
import { outputArgs, outputFile } from "../../client/output_file.ts";
import { defineCommand } from "../../command.ts";
import { clientArgs, idArg } from "../../incident/args.ts";
import { IncidentClient } from "../../incident/incident.ts";
import { idOf } from "../../incident/write.ts";
import { counted, printable, printableLines, printJson } from "../../text.ts";
import { localTime } from "../../when.ts";

/** The answer of the API. */
interface Postmortem {
  document_id: number | null;
  text: string;
  new_entries: { event_id: number; at: string; who: string; text: string }[];
  new_tasks: { id: number; description: string }[];
  missing_sections: string[];
  empty_sections: string[];
  outdated_entries: { event_id: number; change: string; who: string; at: string }[];
  gaps: { from: string; to: string }[];
}

export default defineCommand({
  summary: "Draft the post-mortem of an incident, and print it",
  args: {
    ...idArg,
    add: { type: "boolean", description: "Add what is new since it was drafted" },
    ...outputArgs,
    ...clientArgs,
  },
  examples: ["svc incident postmortem INC-44 -o INC-44.md", "svc incident postmortem --add"],
  notes: [
    "The first time, it drafts the post-mortem from the timeline, the roles, the reports, the messages, the tasks, the impact and the cost, as a document of the incident. After that, it prints that document. What somebody has written is never changed: edit it with `svc incident doc edit`, or in the browser.",
  ],
  async run({ add, output, force, json, ...named }, io) {
    const file = outputFile(output, force);
    const given = idOf(named);
    const postmortem = await IncidentClient.within(io, async (client) => {
      const { id } = await client.resolve(given);
      const path = `/incidents/${id}/postmortem/`;
      const found = await client.call<Postmortem>("GET", path);
      return found.document_id === null || add ? client.call<Postmortem>("POST", path, {}) : found;
    });
    const { text } = postmortem;
    if (json) printJson(io, postmortem);
    else if (file) file.write(text);
    // Other programs get the text as it is.
    else io.stdout.write(io.stdout.isTTY ? `${printableLines(text).join("\n")}\n` : text);
    for (const line of nextSteps(postmortem, given)) io.stderr.write(`${line}\n`);
  },
});

/** What its writers may do next. */
function nextSteps(
  {
    document_id,
    new_entries,
    new_tasks,
    missing_sections,
    empty_sections,
    outdated_entries,
    gaps,
  }: Postmortem,
  given: string | undefined,
) {
  const add = ["svc incident postmortem", ...(given === undefined ? [] : [printable(given)]), "--add"].join(
    " ",
  );
  const isNew = new_entries.length + new_tasks.length + missing_sections.length > 0;
  return [
    ...(empty_sections.length > 0
      ? [`Nobody has written yet: ${empty_sections.map((one) => printable(one)).join(", ")}`]
      : []),
    ...outdated_entries.map(
      ({ event_id, change, who, at }) =>
        `Look at what it says of ${entryName(event_id)}: ${change} by ${printable(who)} at ${localTime(at)}`,
    ),
    ...(gaps.length > 0 ? [`The timeline has ${counted(gaps.length, "gap")} of half an hour or more`] : []),
    ...(isNew ? [`More has happened since it was drafted: ${add}`] : []),
    `Edit it: svc incident doc edit ${document_id}`,
  ];
}
