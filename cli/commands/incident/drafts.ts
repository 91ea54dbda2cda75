import { defineCommand } from "../../command.ts";
import { type ListedDraft, listDrafts } from "../../incident/drafts.ts";
import { withoutComment } from "../../incident/template.ts";
import { whenText } from "../../incident/text.ts";
import { jsonText, printable, shellWord } from "../../text.ts";

export default defineCommand({
  summary: "List the texts that could not be sent, and how to send them",
  args: { json: { type: "boolean", description: "Print JSON" } },
  examples: ["svc incident drafts", "svc incident drafts --json"],
  notes: [
    "svc keeps a text in $XDG_STATE_HOME/svc/drafts (default: ~/.local/state/svc/drafts) until it is sent. To discard one, delete its file.",
  ],
  async run({ json }, io) {
    const items = listDrafts(io.env).map((one) => ({ ...one, text: textOf(one), command: commandOf(one) }));
    if (json) io.stdout.write(`${jsonText({ items })}\n`);
    else if (items.length === 0) io.stderr.write("No kept texts found.\n");
    for (const { kind, at, file, text, command } of json ? [] : items) {
      const [first = ""] = text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("# "));
      io.stdout.write(`${whenText(at, io)}  ${kind}: ${printable(first.trim(), 60)}\n`);
      const isRequest = command === null && file.endsWith(".json");
      const how = isRequest ? "Repeat its command within a day" : `Kept in ${printable(file, 1000)}`;
      io.stdout.write(`  ${command ?? how}\n`);
    }
  },
});

/** What the user wrote. A report, and a task or document without a text, are requests. */
function textOf({ file, text }: ListedDraft): string {
  if (!file.endsWith(".json")) return withoutComment(text);
  try {
    const { title, description = "", body = {} } = JSON.parse(text);
    return String(title === undefined ? (body.description ?? body.name) : `${title}\n${description}`);
  } catch {
    return text;
  }
}

function commandOf({ kind, file, command }: ListedDraft): string | null {
  const isReport = kind === "report" && file.endsWith(".json");
  return isReport ? `svc incident report --recover ${shellWord(file)}` : command;
}
