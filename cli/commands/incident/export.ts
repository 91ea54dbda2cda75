import pLimit from "p-limit";
import { Conflict, NotFound, Unavailable } from "../../../platform/errors.ts";
import { asTyped, withoutControls } from "../../../platform/markdown.ts";
import { outputArgs, outputFile } from "../../client/output_file.ts";
import { NetworkFault } from "../../client/request.ts";
import { defineCommand } from "../../command.ts";
import { type Affected, affectedBy, nothingAffected } from "../../incident/affected.ts";
import { clientArgs, idArg } from "../../incident/args.ts";
import type { Content, Document } from "../../incident/doc.ts";
import {
  IncidentClient,
  type IncidentDetail,
  ifUnknown,
  type Message,
  type Participant,
  printIncident,
  type StatusReport,
  type Task,
  type TimelineEvent,
} from "../../incident/incident.ts";
import type { Link } from "../../incident/link.ts";
import { impactText, visibilityText } from "../../incident/text.ts";
import { type EntryState, entryMark, entryText, markOf, removedText } from "../../incident/timeline.ts";
import { idOf } from "../../incident/write.ts";
import type { Io } from "../../io.ts";
import { counted, jsonText, printable } from "../../text.ts";

export default defineCommand({
  summary: "Export an incident with all its parts",
  args: {
    ...idArg,
    format: {
      type: "enum",
      choices: ["md", "json", "html"],
      default: "md",
      metavar: "FORMAT",
      description: "Format of the file",
    },
    ...outputArgs,
    ...clientArgs,
  },
  examples: ["svc incident export INC-44 -o INC-44.md", "svc incident export --format html -o review.html"],
  notes: [
    "The export contains only what you may see, with the texts of the documents and the messages to everyone, but without messages to one person, because an export is for others.",
  ],
  async run({ format, output, force, json, ...named }, io) {
    const file = outputFile(output, force);
    const exported = await IncidentClient.within(io, async (client) =>
      readAll(io, client, await client.resolve(idOf(named))),
    );
    const text = json || format === "json" ? `${jsonText(exported, 2)}\n` : render(exported, format);
    if (!file) {
      io.stdout.write(text);
      return;
    }
    file.write(text);
    printIncident(io, exported);
  },
});

/** An incident with all its parts that the user may see. Lists are in the order of their creation. */
interface ExportedIncident extends Omit<IncidentDetail, "documents"> {
  /** Also those who have left. */
  participants: Participant[];
  affected: Affected;
  links: Link[];
  reports: StatusReport[];
  tasks: Task[];
  documents: ExportedDocument[];
  /** To everyone. */
  messages: Message[];
  events: TimelineEvent[];
}

interface ExportedDocument extends Document {
  /** Null without a text. */
  content: Content | null;
  /** Why the text could not be read. */
  content_error?: string;
}

const all = Number.POSITIVE_INFINITY;
/** Documents read at a time. */
const parallel = 4;
/** In seconds. The text may come from another system. */
const contentTimeout = 60;

async function readAll(io: Io, client: IncidentClient, incident: IncidentDetail): Promise<ExportedIncident> {
  const path = `/incidents/${incident.id}`;
  const incident_id = String(incident.id);
  const [participants, affected, links, reports, tasks, documents, messages, events] = await Promise.all([
    client.participants(incident, false),
    affectedBy(client, incident).catch(ifUnknown(nothingAffected)),
    client.list<Link>(`${path}/links/`, {}, all).catch(ifUnknown<Link[]>([])),
    client.list<StatusReport>(`${path}/reports/`, {}, all),
    client.list<Task>("/tasks/", { incident_id, sort: "id" }, all),
    client.list<Document>("/documents/", { incident_id, sort: "id" }, all),
    client.list<Message>(`${path}/messages/`, {}, all),
    client.list<TimelineEvent>(`${path}/events/`, {}, all),
  ]);
  // The API lists these with the newest first.
  for (const list of [reports, messages, events]) list.reverse();
  const open = messages.filter(({ recipient }) => recipient === null);
  if (open.length < messages.length) {
    const count = counted(messages.length - open.length, "message");
    io.stderr.write(`Left out: ${count} to one person (svc incident messages ${incident.name})\n`);
  }
  return {
    ...incident,
    participants,
    affected,
    links,
    reports,
    tasks,
    documents: await pLimit(parallel).map(documents, (one) => withContent(io, client, one)),
    messages: open,
    events,
  };
}

/** One text that cannot be read does not spoil the rest of an export, but both say so. */
async function withContent(io: Io, client: IncidentClient, document: Document): Promise<ExportedDocument> {
  try {
    const path = `/documents/${document.id}/content`;
    const options = { timeout: contentTimeout };
    return { ...document, content: await client.call<Content>("GET", path, undefined, options) };
  } catch (error) {
    // It has none, such as a link.
    if (error instanceof Conflict) return { ...document, content: null };
    const isOfPlugin =
      error instanceof NotFound || (error instanceof Unavailable && !(error instanceof NetworkFault));
    if (!isOfPlugin) throw error;
    const detail = printable(error.detail);
    io.stderr.write(`svc: warning: the text of document ${document.id} could not be read: ${detail}\n`);
    return { ...document, content: null, content_error: error.detail };
  }
}

/** What a person reads, for both formats. Texts are plain, because they are what people typed. */
type Block =
  | { kind: "heading"; level: 1 | 2 | 3; text: string }
  | { kind: "text"; text: string }
  /** A document in a markup of its own. */
  | { kind: "document"; text: string }
  | { kind: "table"; header: string[]; rows: string[][] };

function blocksOf(one: ExportedIncident): Block[] {
  const heading = (text: string, level: 1 | 2 | 3 = 2): Block => ({ kind: "heading", level, text });
  const section = (title: string, text: string | null): Block[] =>
    text?.trim() ? [heading(title), { kind: "text", text }] : [];
  const list = (title: string, header: string[], rows: string[][]): Block[] =>
    rows.length === 0 ? [] : [heading(title), { kind: "table", header, rows }];
  const facts = [
    ["Status", one.status],
    ["Priority", one.incident_priority.name],
    ["Type", one.incident_type.name],
    ["Visibility", visibilityText(one.visibility)],
    ["Commander", one.commander?.email ?? ""],
    ["Reporter", one.reporter?.email ?? ""],
    ["Reported", one.reported_at],
    ["Stable", one.stable_at ?? ""],
    ["Closed", one.closed_at ?? ""],
    ["Impact", impactText(one, (instant) => instant) ?? ""],
    ["Services", one.affected.services.map(({ name }) => name).join(", ")],
    ["Applications", one.affected.applications.map(({ name }) => name).join(", ")],
  ].filter(([, value]) => value !== "");
  return [
    heading(`${one.name}: ${one.title}`, 1),
    { kind: "table", header: ["", ""], rows: facts },
    ...section("Description", one.description),
    ...section("Resolution", one.resolution),
    ...list(
      "People",
      ["Person", "Roles", "Joined", "Left"],
      one.participants.map(({ individual, roles, joined_at, left_at }) => [
        individual.email,
        [...new Set(roles.map(({ role }) => role))].join(", "),
        joined_at,
        left_at ?? "",
      ]),
    ),
    ...(one.reports.length === 0 ? [] : [heading("Status reports")]),
    ...one.reports.flatMap(
      ({ author, created_at, conditions, actions, needs, event_id, ...state }): Block[] => [
        heading(`${created_at}, ${author.email} ${entryMark(event_id, state, asIs)}`.trimEnd(), 3),
        ...removedBlock(state),
        ...(["Conditions", "Actions", "Needs"] as const).flatMap((name, at): Block[] => {
          const text = [conditions, actions, needs][at]!;
          return text.trim() === "" ? [] : [{ kind: "text", text: `${name}: ${text}` }];
        }),
      ],
    ),
    ...list(
      "Tasks",
      ["Task", "Status", "Assignees", "Due"],
      one.tasks.map(({ description, status, assignees, owner, resolve_by }) => [
        description,
        status,
        (assignees.length > 0 ? assignees : owner ? [owner] : []).map(({ email }) => email).join(", "),
        resolve_by,
      ]),
    ),
    ...list(
      "Documents",
      ["Document", "Type", "Link"],
      one.documents.map(({ name, resource_type, weblink }) => [name, resource_type, weblink ?? ""]),
    ),
    ...list(
      "Linked incidents",
      ["Incident", "Title", "Kind"],
      one.links.map(({ kind, incident }) => [incident.name, incident.title, kind.replaceAll("_", " ")]),
    ),
    ...list(
      "Messages",
      ["Time", "Who", "Message"],
      // svc repeats reports, notes and changes in the channel.
      one.messages.flatMap(({ at, author, text, event_id, ...state }) =>
        author === null
          ? []
          : [[at, author.email, marked(removedText(state, asIs) ?? text, entryMark(event_id, state, asIs))]],
      ),
    ),
    ...list(
      "Timeline",
      ["Time", "Who", "Event"],
      one.events
        .filter(({ kind }) => kind !== "message.sent")
        .map((event) => [event.at, event.actor, timelineText(event)]),
    ),
    ...one.documents.flatMap(({ name, content, content_error }): Block[] => {
      const title = heading(`Document: ${name}`);
      if (content_error !== undefined)
        return [title, { kind: "text", text: `The text could not be read: ${content_error}` }];
      return content === null || content.text.trim() === ""
        ? []
        : [title, { kind: "document", text: content.text }];
    }),
  ];
}

/** Reports have a section of their own. */
function timelineText(event: TimelineEvent): string {
  const entry = { event, more: [] };
  const text = event.kind === "report.written" ? "Status report" : entryText(entry, asIs);
  return marked(text, markOf(entry, asIs));
}

const asIs = (instant: string) => instant;

const marked = (text: string, mark: string) => `${text.trimEnd()} ${mark}`.trimEnd();

function removedBlock(state: EntryState): Block[] {
  const text = removedText(state, asIs);
  return text === undefined ? [] : [{ kind: "text", text }];
}

function render(exported: ExportedIncident, format: "md" | "html"): string {
  const blocks = blocksOf(exported);
  if (format === "md") return `${blocks.map(markdownOf).join("\n\n")}\n`;
  const title = htmlText(`${exported.name}: ${exported.title}`);
  const style =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}" +
    "table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:.3rem .6rem;text-align:start;vertical-align:top}" +
    "p,td,pre{white-space:pre-wrap;overflow-wrap:anywhere}";
  const head = `<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n<title>${title}</title>`;
  const body = blocks.map(htmlOf).join("\n");
  return `<!doctype html>\n<html lang="en">\n${head}\n<style>${style}</style>\n<body dir="auto">\n${body}\n</body>\n</html>\n`;
}

/** A fence that is longer than any in the text, so that the text cannot end it. */
function fenced(text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}markdown\n${withoutControls(text).replace(/\n?$/, "\n")}${fence}`;
}

function markdownOf(block: Block): string {
  if (block.kind === "heading")
    return `${"#".repeat(block.level)} ${asTyped(block.text).replaceAll("\n", " ")}`;
  // Two spaces at the end of a line break it.
  if (block.kind === "text") return asTyped(block.text.trim()).replaceAll(/(?<=\S)\n(?=\S)/g, "  \n");
  if (block.kind === "document") return fenced(block.text);
  const line = (cells: string[]) =>
    `| ${cells.map((cell) => asTyped(cell.trim()).replaceAll("\n", "<br>")).join(" | ")} |`;
  return [line(block.header), `|${" --- |".repeat(block.header.length)}`, ...block.rows.map(line)].join("\n");
}

function htmlText(text: string): string {
  return Bun.escapeHTML(withoutControls(text));
}

function htmlOf(block: Block): string {
  if (block.kind === "heading") return `<h${block.level}>${htmlText(block.text)}</h${block.level}>`;
  if (block.kind === "text") return `<p>${htmlText(block.text.trim())}</p>`;
  // HTML ignores a line break at the beginning.
  if (block.kind === "document") return `<pre>\n${htmlText(block.text)}</pre>`;
  const row = (cells: string[], tag: "td" | "th") =>
    `<tr>${cells.map((cell) => `<${tag}>${htmlText(cell.trim())}</${tag}>`).join("")}</tr>`;
  const header = block.header.some((cell) => cell !== "") ? [row(block.header, "th")] : [];
  return `<table>\n${[...header, ...block.rows.map((cells) => row(cells, "td"))].join("\n")}\n</table>`;
}
