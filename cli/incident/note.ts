import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { parseWhen } from "../when.ts";
import { IncidentClient } from "./incident.ts";
import { emailOf } from "./people.ts";
import { againLine, done, option, sending, sourceOf, splitWords, withStdin, writtenText } from "./write.ts";

export interface NoteOptions {
  words?: string[];
  incident?: string;
  file?: string;
  editor?: boolean;
  at?: string;
  server?: string;
  json?: boolean;
}

/** `svc incident note` */
export async function noteCommand(options: NoteOptions, io: Io): Promise<void> {
  const { server, json } = options;
  const at = options.at === undefined ? undefined : parseWhen("--at", options.at, io.clock.now());
  const { incident: typed, words } = splitWords(options.words, options.incident);
  const source = sourceOf(words, options.file, options.editor);
  const again = (incident = typed) =>
    againLine(io, server, ["note", ...option("-i", incident), ...option("--at", at?.toISOString())]);
  await withStdin(io, "note", source, again(), async (io) => {
    const incident = await IncidentClient.within(io, server, async (client) => {
      const found = await client.resolve(typed);
      if (options.at !== undefined) client.checkClock("--at", options.at);
      return found;
    });
    const note = await writtenText(io, "note", source, incident);
    const event = await sending(io, "note", note, again(incident.name), () =>
      IncidentClient.within(io, server, (client) =>
        client.post(
          `/incidents/${incident.id}/events`,
          { description: note.text, at: at?.toISOString() },
          { key: note.key },
        ),
      ),
    );
    done(io, incident, json, event);
  });
}

export interface SayOptions extends Omit<NoteOptions, "at"> {
  to?: string;
}

/** `svc incident say` */
export async function sayCommand(options: SayOptions, io: Io): Promise<void> {
  const { server, json, to } = options;
  const { incident: typed, words } = splitWords(options.words, options.incident);
  const source = sourceOf(words, options.file, options.editor);
  const again = (incident = typed) =>
    againLine(io, server, ["say", ...option("-i", incident), ...option("--to", to)]);
  await withStdin(io, "message", source, again(), async (io) => {
    const { incident, recipient_id } = await IncidentClient.within(io, server, async (client) => {
      const incident = await client.resolve(typed);
      const recipient_id = to === undefined ? undefined : await participantId(io, client, incident, to);
      return { incident, recipient_id };
    });
    const message = await writtenText(io, "message", source, incident);
    const said = await sending(io, "message", message, again(incident.name), () =>
      IncidentClient.within(io, server, (client) =>
        client.post(
          `/incidents/${incident.id}/messages`,
          { text: message.text, recipient_id },
          { key: message.key },
        ),
      ),
    );
    done(io, incident, json, said);
  });
}

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
