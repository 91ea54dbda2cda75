import { asTyped, withoutControls } from "../../../platform/markdown.ts";
import type { ApiView } from "../../../platform/names.ts";
import { jsonText } from "../../../platform/text.ts";
import type { Affected } from "../affected/affected.ts";
import type { DocumentText } from "../document/content.ts";
import type { Document } from "../document/document.ts";
import type { IncidentDetail } from "../incident/get.ts";
import type { Link } from "../link/link.ts";
import type { Message } from "../message/message.ts";
import type { Participant } from "../participant/participant.ts";
import type { Report } from "../report/report.ts";
import type { Task } from "../task/task.ts";
import {
  type EntryState,
  entryMark,
  entryText,
  impactText,
  markOf,
  removedText,
  type TimelineEvent,
  visibilityText,
} from "../words.ts";

// An incident in one file, for `svc incident export` and the pages. Both read it in pieces, because a timeline may be longer
// than what one wants to hold in memory.

export const exportFormats = ["md", "json", "html"] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** Read once, while the file is written. */
type List<T> = Iterable<T> | AsyncIterable<T>;

/** The file does not say whom and what was proposed. */
type Proposed = "documents" | "individuals" | "teams";

/** An incident with all its parts that a reader may see, as the API shows them. Lists have the oldest first. */
export interface ExportedIncident {
  incident: Omit<ApiView<IncidentDetail>, Proposed> & Record<Proposed, unknown>;
  affected: ApiView<Affected>;
  /** Also those who have left. */
  participants: List<ApiView<Participant>>;
  links: List<ApiView<Link>>;
  reports: List<ApiView<Report>>;
  tasks: List<ApiView<Task>>;
  documents: readonly ApiView<Document>[];
  /** Those to one person are left out, because an export is for others. */
  messages: List<ApiView<Message>>;
  events: List<TimelineEvent>;
  contentOf(document: ApiView<Document>): Promise<ExportedContent>;
}

export interface ExportedContent {
  /** Null without a text. */
  content: DocumentText | null;
  /** Why the text could not be read. */
  content_error?: string;
}

/** The file, in pieces of any length. */
export function exported(one: ExportedIncident, format: ExportFormat): AsyncGenerator<string> {
  return format === "json" ? inJson(one) : inMarkup(one, format === "md" ? markdown : html(one.incident));
}

async function* inJson(one: ExportedIncident): AsyncGenerator<string> {
  const { documents: _, ...incident } = one.incident;
  yield jsonText({ ...incident, affected: one.affected }, 2).slice(0, -"\n}".length);
  const lists = {
    participants: one.participants,
    links: one.links,
    reports: one.reports,
    tasks: one.tasks,
    documents: each(one.documents, async (document) => [{ ...document, ...(await one.contentOf(document)) }]),
    messages: toEveryone(one),
    events: one.events,
  };
  for (const [name, list] of Object.entries<List<unknown>>(lists)) {
    yield `,\n  "${name}": [`;
    let before = "";
    for await (const item of list) {
      yield `${before}\n${jsonText(item, 2).replaceAll(/^/gm, "    ")}`;
      before = ",";
    }
    yield before === "" ? "]" : "\n  ]";
  }
  yield "\n}\n";
}

const toEveryone = ({ messages }: ExportedIncident) =>
  each(messages, (message) => (message.recipient === null ? [message] : []));

/** None, one or several for each item. */
async function* each<T, Made>(list: List<T>, made: (item: T) => Made[] | Promise<Made[]>) {
  for await (const item of list) yield* await made(item);
}

/** What a person reads. Texts are plain, because they are what people typed. */
type Block =
  | { kind: "heading"; level: 1 | 2 | 3; text: string }
  | { kind: "text"; text: string }
  /** A document in a markup of its own. */
  | { kind: "document"; text: string }
  | { kind: "table"; header: string[]; rows: List<string[]> };

type Table = Extract<Block, { kind: "table" }>;

const heading = (text: string, level: 1 | 2 | 3 = 2): Block => ({ kind: "heading", level, text });

function section(title: string, text: string | null): Block[] {
  return text?.trim() ? [heading(title), { kind: "text", text }] : [];
}

/** Nothing without rows. */
async function* table(title: string, header: string[], rows: AsyncIterator<string[]>): AsyncGenerator<Block> {
  const first = await rows.next();
  if (first.done) return;
  async function* all() {
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => rows };
  }
  yield heading(title);
  yield { kind: "table", header, rows: all() };
}

async function* blocksOf(one: ExportedIncident): AsyncGenerator<Block> {
  const { incident, affected, documents } = one;
  yield heading(`${incident.name}: ${incident.title}`, 1);
  const facts = [
    ["Status", incident.status],
    ["Priority", incident.incident_priority.name],
    ["Type", incident.incident_type.name],
    ["Visibility", visibilityText(incident.visibility)],
    ["Commander", incident.commander?.email ?? ""],
    ["Reporter", incident.reporter?.email ?? ""],
    ["Reported", incident.reported_at],
    ["Stable", incident.stable_at ?? ""],
    ["Closed", incident.closed_at ?? ""],
    ["Impact", impactText(incident, asIs) ?? ""],
    ["Services", affected.services.map(({ name }) => name).join(", ")],
    ["Applications", affected.applications.map(({ name }) => name).join(", ")],
  ].filter(([, value]) => value !== "");
  yield { kind: "table", header: ["", ""], rows: facts };
  yield* section("Description", incident.description);
  yield* section("Resolution", incident.resolution);
  yield* table(
    "People",
    ["Person", "Roles", "Joined", "Left"],
    each(one.participants, ({ individual, roles, joined_at, left_at }) => [
      [individual.email, [...new Set(roles.map(({ role }) => role))].join(", "), joined_at, left_at ?? ""],
    ]),
  );
  let title: Block[] = [heading("Status reports")];
  for await (const { author, created_at, conditions, actions, needs, event_id, ...state } of one.reports) {
    yield* title;
    title = [];
    yield heading(`${created_at}, ${author.email} ${entryMark(event_id, state, asIs)}`.trimEnd(), 3);
    yield* removedBlock(state);
    for (const [name, text] of Object.entries({ Conditions: conditions, Actions: actions, Needs: needs }))
      if (text.trim() !== "") yield { kind: "text", text: `${name}: ${text}` };
  }
  yield* table(
    "Tasks",
    ["Task", "Status", "Assignees", "Due"],
    each(one.tasks, ({ description, status, assignees, owner, resolve_by }) => {
      const people = assignees.length > 0 ? assignees : owner ? [owner] : [];
      return [[description, status, people.map(({ email }) => email).join(", "), resolve_by]];
    }),
  );
  yield* table(
    "Documents",
    ["Document", "Type", "Link"],
    each(documents, ({ name, resource_type, weblink }) => [[name, resource_type, weblink ?? ""]]),
  );
  yield* table(
    "Linked incidents",
    ["Incident", "Title", "Kind"],
    each(one.links, ({ kind, incident }) => [[incident.name, incident.title, kind.replaceAll("_", " ")]]),
  );
  yield* table(
    "Messages",
    ["Time", "Who", "Message"],
    each(toEveryone(one), ({ at, author, text, event_id, ...state }) =>
      // svc repeats reports, notes and changes in the channel.
      author === null
        ? []
        : [[at, author.email, marked(removedText(state, asIs) ?? text, entryMark(event_id, state, asIs))]],
    ),
  );
  yield* table(
    "Timeline",
    ["Time", "Who", "Event"],
    each(one.events, (event) =>
      event.kind === "message.sent" ? [] : [[event.at, event.actor, timelineText(event)]],
    ),
  );
  for (const document of documents) {
    const { content, content_error } = await one.contentOf(document);
    const text = content?.text ?? "";
    if (content_error === undefined && text.trim() === "") continue;
    yield heading(`Document: ${document.name}`);
    yield content_error === undefined
      ? { kind: "document", text }
      : { kind: "text", text: `The text could not be read: ${content_error}` };
  }
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

/** A kind of file. Rows are the lines of a table between its beginning and its end. */
interface Markup {
  begin: string;
  /** Between two blocks. */
  between: string;
  end: string;
  block(block: Exclude<Block, Table>): string;
  tableBegin(header: string[]): string;
  row(cells: string[]): string;
  tableEnd: string;
}

async function* inMarkup(one: ExportedIncident, markup: Markup): AsyncGenerator<string> {
  let before = markup.begin;
  for await (const block of blocksOf(one)) {
    yield before;
    before = markup.between;
    if (block.kind !== "table") {
      yield markup.block(block);
      continue;
    }
    yield markup.tableBegin(block.header);
    for await (const cells of block.rows) yield `\n${markup.row(cells)}`;
    yield markup.tableEnd;
  }
  yield markup.end;
}

const markdown: Markup = {
  begin: "",
  between: "\n\n",
  end: "\n",
  block(block) {
    if (block.kind === "heading")
      return `${"#".repeat(block.level)} ${asTyped(block.text).replaceAll("\n", " ")}`;
    if (block.kind === "document") return fenced(block.text);
    // Two spaces at the end of a line break it.
    return asTyped(block.text.trim()).replaceAll(/(?<=\S)\n(?=\S)/g, "  \n");
  },
  tableBegin: (header) => `${markdownRow(header)}\n|${" --- |".repeat(header.length)}`,
  row: markdownRow,
  tableEnd: "",
};

function markdownRow(cells: string[]): string {
  return `| ${cells.map((cell) => asTyped(cell.trim()).replaceAll("\n", "<br>")).join(" | ")} |`;
}

/** A fence that is longer than any in the text, so that the text cannot end it. */
function fenced(text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}markdown\n${withoutControls(text).replace(/\n?$/, "\n")}${fence}`;
}

function html({ name, title }: Pick<IncidentDetail, "name" | "title">): Markup {
  const style =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}" +
    "table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:.3rem .6rem;text-align:start;vertical-align:top}" +
    "p,td,pre{white-space:pre-wrap;overflow-wrap:anywhere}";
  const head = `<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n<title>${htmlText(`${name}: ${title}`)}</title>`;
  return {
    begin: `<!doctype html>\n<html lang="en">\n${head}\n<style>${style}</style>\n<body dir="auto">\n`,
    between: "\n",
    end: "\n</body>\n</html>\n",
    block(block) {
      if (block.kind === "heading") return `<h${block.level}>${htmlText(block.text)}</h${block.level}>`;
      // HTML ignores a line break at the beginning.
      if (block.kind === "document") return `<pre>\n${htmlText(block.text)}</pre>`;
      return `<p>${htmlText(block.text.trim())}</p>`;
    },
    tableBegin: (header) =>
      header.some((cell) => cell !== "") ? `<table>\n${htmlRow(header, "th")}` : "<table>",
    row: (cells) => htmlRow(cells, "td"),
    tableEnd: "\n</table>",
  };
}

function htmlRow(cells: string[], tag: "td" | "th"): string {
  return `<tr>${cells.map((cell) => `<${tag}>${htmlText(cell.trim())}</${tag}>`).join("")}</tr>`;
}

function htmlText(text: string): string {
  return Bun.escapeHTML(withoutControls(text));
}
