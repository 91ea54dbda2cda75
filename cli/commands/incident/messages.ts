import { entryMark, removedText } from "../../../core/incident/words.ts";
import { defineCommand } from "../../command.ts";
import { clientArgs, idArg, limitArg, limitOf, tellMore } from "../../incident/args.ts";
import { IncidentClient, type Message } from "../../incident/incident.ts";
import { nameOf } from "../../incident/people.ts";
import { stylesOf, whenText } from "../../incident/text.ts";
import { withMark } from "../../incident/watch_text.ts";
import { idOf } from "../../incident/write.ts";
import type { Io } from "../../io.ts";
import { widthOf, wrapped } from "../../table.ts";
import { printableLines, printJson } from "../../text.ts";

export default defineCommand({
  summary: "Read the messages in the incident's channel",
  args: { ...idArg, ...limitArg("messages"), ...clientArgs },
  examples: ["svc incident messages INC-44", "svc incident messages -L 5", "svc incident messages --json"],
  notes: [
    "The newest messages, oldest first. svc itself writes status reports, notes and changes into the channel, too. Only you and the other person see a message that was sent to one person.",
  ],
  async run({ limit: given, json, ...named }, io) {
    const limit = limitOf(given);
    const found = await IncidentClient.within(io, async (client) => {
      const incident = await client.resolve(idOf(named));
      return client.list<Message>(`/incidents/${incident.id}/messages/`, {}, limit + 1);
    });
    const { plain } = await import("../../../platform/markdown.ts");
    const items = found.slice(0, limit).reverse();
    if (json) printJson(io, { items });
    else if (items.length === 0) io.stderr.write("No messages found.\n");
    else io.stdout.write(items.map((message) => messageText(message, io, plain)).join("\n"));
    if (found.length > limit) tellMore(io, limit, "svc incident view --json");
  },
});

/** Who, when and to whom, and below it the text. */
function messageText(
  { at, author, recipient, text, event_id, ...state }: Message,
  io: Io,
  plain: (markdown: string) => string,
): string {
  const to = recipient === null ? "" : ` to ${nameOf(recipient)}`;
  const who = author === null ? "svc" : nameOf(author);
  const width = widthOf(io.stdout);
  // svc writes Markdown, with backslashes before what people wrote.
  const when = (instant: string) => whenText(instant, io);
  const shown = removedText(state, when) ?? (author === null ? plain(text) : text);
  const lines = printableLines(shown)
    .flatMap((line) => wrapped(line, width === undefined ? undefined : Math.max(10, width - 2)))
    .map((line) => `  ${line}`.trimEnd());
  const header = `${stylesOf(io)(`${who}${to}`, "bold")}, ${when(at)}`;
  return `${[...withMark([header], entryMark(event_id, state, when), io), ...lines].join("\n")}\n`;
}
