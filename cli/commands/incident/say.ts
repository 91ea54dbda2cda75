import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { clientArgs, incidentArg, textArg, textArgs } from "../../incident/args.ts";
import { IncidentClient } from "../../incident/incident.ts";
import { emailOf } from "../../incident/people.ts";
import {
  againLine,
  done,
  incidentAndText,
  option,
  sending,
  withStdin,
  writtenText,
} from "../../incident/write.ts";
import type { Io } from "../../io.ts";

export default defineCommand({
  summary: "Send a message to the participants, in the incident's channel",
  args: {
    ...textArg,
    ...incidentArg,
    ...textArgs("the message"),
    to: { type: "string", metavar: "USER", description: "Send it only to this participant" },
    ...clientArgs,
  },
  examples: [
    'svc incident say "Who can restart the load balancer?"',
    'svc incident say --to dana "Please join"',
  ],
  notes: [
    "If the message cannot be sent, svc keeps it in a file and prints how to send it again, which never sends it twice.",
  ],
  async run(options, io) {
    const { to, json } = options;
    const { incident: typed, source } = incidentAndText(options, "say TEXT");
    const again = (incident = typed) =>
      againLine(io, ["say", ...option("-i", incident), ...option("--to", to)]);
    await withStdin(io, "message", source, again(), async (io) => {
      const { incident, recipient_id } = await IncidentClient.within(io, async (client) => {
        const incident = await client.resolve(typed);
        const recipient_id = to === undefined ? undefined : await participantId(io, client, incident, to);
        return { incident, recipient_id };
      });
      const message = await writtenText(io, "message", source, incident, again(incident.name));
      const said = await sending(io, "message", message, again(incident.name), () =>
        IncidentClient.within(io, (client) =>
          client.post(
            `/incidents/${incident.id}/messages`,
            { text: message.text, recipient_id },
            { key: message.key },
          ),
        ),
      );
      done(io, incident, json, said);
    });
  },
});

async function participantId(
  io: Io,
  client: IncidentClient,
  incident: { id: number; name: string },
  user: string,
) {
  const email = (await emailOf(io, client, user)).toLowerCase();
  const participants = await client.participants(incident);
  const found = participants.find(({ individual }) => individual.email.toLowerCase() === email);
  if (found === undefined) throw new UsageError(`--to: ${email} does not take part in ${incident.name}`);
  return found.individual.id;
}
