import { defineCommand } from "../../command.ts";
import { clientArgs, incidentArg, textArg, textArgs } from "../../incident/args.ts";
import { IncidentClient } from "../../incident/incident.ts";
import { atText } from "../../incident/text.ts";
import {
  againLine,
  done,
  incidentAndText,
  option,
  sending,
  withStdin,
  writtenText,
} from "../../incident/write.ts";
import { parseWhen } from "../../when.ts";

export default defineCommand({
  summary: "Add a note to the timeline",
  args: {
    ...textArg,
    ...incidentArg,
    ...textArgs("the note"),
    at: {
      type: "string",
      metavar: "TIME",
      description: "When it happened, if not now: 10m, 14:05 (today), 2026-11-20T14:05:00Z",
    },
    ...clientArgs,
  },
  examples: [
    'svc incident note "The disk of db-2 is full"',
    'svc incident note INC-44 "Rolled back" --at 14:05',
    "df -h | svc incident note -",
  ],
  notes: [
    "If the note cannot be sent, svc keeps it in a file and prints how to send it again, which never adds it twice.",
  ],
  async run(options, io) {
    const { at, json } = options;
    const instant = at === undefined ? undefined : parseWhen("--at", at, io.clock.now(), false);
    const { incident: typed, source } = incidentAndText(options, "note TEXT");
    const again = (incident = typed) =>
      againLine(io, ["note", ...option("-i", incident), ...option("--at", instant?.toISOString())]);
    await withStdin(io, "note", source, again(), async (io) => {
      const incident = await IncidentClient.within(io, async (client) => {
        const found = await client.resolve(typed);
        if (at !== undefined) client.checkClock("--at", at);
        return found;
      });
      const note = await writtenText(io, "note", source, incident, again(incident.name));
      const event = await sending(io, "note", note, again(incident.name), () =>
        IncidentClient.within(io, (client) =>
          client.post(
            `/incidents/${incident.id}/events`,
            { description: note.text, at: instant?.toISOString() },
            { key: note.key },
          ),
        ),
      );
      done(io, incident, json, event);
      if (instant) io.stderr.write(`Noted at ${atText(instant, io)}\n`);
    });
  },
});
