import { entryName, removedText } from "../../../core/incident/words.ts";
import { defineCommand } from "../../command.ts";
import { confirmByName } from "../../confirm.ts";
import { clientArgs, incidentArg } from "../../incident/args.ts";
import { aboutEntry, entryArg, entryPath, parseEntry, readEntry } from "../../incident/entry.ts";
import { IncidentClient, type TimelineEvent } from "../../incident/incident.ts";
import { whenText } from "../../incident/text.ts";
import { done } from "../../incident/write.ts";

export default defineCommand({
  summary: "Withdraw a note, a report or a message",
  args: {
    ...entryArg,
    ...incidentArg,
    yes: { type: "boolean", short: "y", description: "Skip the confirmation" },
    ...clientArgs,
  },
  examples: ["svc incident withdraw e1042", "svc incident withdraw e1042 -i INC-44 --yes"],
  notes: [
    "You can withdraw what you wrote, until a day after the incident was closed; admins can withdraw everything at any time. The timeline keeps that there was an entry, and who withdrew it and when. Only admins can still read its text: svc incident history ENTRY. To remove it from the database, for example because it is a password: svc incident redact ENTRY.",
  ],
  async run({ entry, incident: typed, yes, json }, io) {
    const id = parseEntry(entry);
    await IncidentClient.within(io, async (client) => {
      const incident = await client.resolve(typed);
      const seen = await readEntry(client, incident, id);
      const removed = removedText(seen.event, (instant) => whenText(instant, io));
      if (removed !== undefined) {
        io.stderr.write(`${entryName(id)} of ${incident.name} has no text any more: ${removed}\n`);
        return;
      }
      const what = `This withdraws ${aboutEntry(seen, incident, io)}`;
      await confirmByName(io, what, entryName(id), yes);
      const { version } = seen;
      const path = `${entryPath(incident, id)}/withdraw`;
      done(io, incident, json, await client.post<TimelineEvent>(path, { version }));
    });
  },
});
