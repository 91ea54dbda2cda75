import { InvalidInput } from "../../platform/errors.ts";
import { nameLength } from "../../platform/text.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { printable } from "../text.ts";
import { draftKey, removeDraft, writeDraft } from "./drafts.ts";
import { edited } from "./editor.ts";
import { announce, type Incident, IncidentClient, type Named, pickNamed } from "./incident.ts";
import { writeDefaultIncident } from "./incident_default.ts";
import { emailOf } from "./incident_people.ts";
import { checkText, readText } from "./written_text.ts";

export interface ReportOptions {
  title?: string;
  description?: string;
  file?: string;
  editor?: boolean;
  type?: string;
  priority?: string;
  restricted?: boolean;
  commander?: string;
  use?: boolean;
  quiet?: boolean;
  recover?: string;
  server?: string;
  json?: boolean;
}

/** A report before it is sent, as a draft keeps it. Names are those that people typed. */
interface ReportDraft {
  title: string;
  description: string;
  type?: string;
  priority?: string;
  restricted?: boolean;
  commander?: string;
  use?: boolean;
}

/** `svc incident report` */
export async function reportCommand(options: ReportOptions, io: Io): Promise<void> {
  const given = ["description", "file", "editor"] as const;
  if (given.filter((name) => options[name] !== undefined && options[name] !== false).length > 1)
    throw new UsageError("give only one of --description, --file and --editor");
  const recovered = options.recover === undefined ? undefined : await readDraft(io, options.recover);
  const key = (options.recover && draftKey(io.env, options.recover)) || crypto.randomUUID();
  const draft = await completed(options, recovered, io);
  let incident: Incident;
  try {
    incident = await send(io, options.server, draft, key, options.title !== undefined);
  } catch (error) {
    // A command line that is wrong can be repeated, unless some of it was written elsewhere.
    const isTyped = options.title !== undefined && !options.editor && options.recover === undefined;
    if (!(error instanceof UsageError && isTyped)) keep(io, draft, key);
    throw error;
  }
  if (options.recover !== undefined) removeDraft(io.env, options.recover);
  show(io, incident, options);
}

async function completed(
  options: ReportOptions,
  recovered: ReportDraft | undefined,
  io: Io,
): Promise<ReportDraft> {
  const { type, priority, restricted, commander, use } = options;
  const kind = { type, priority, restricted, commander, use };
  const chosen = Object.fromEntries(Object.entries(kind).filter(([, value]) => value !== undefined));
  let title = options.title ?? recovered?.title;
  if (title === undefined) {
    if (!io.canAsk()) throw new UsageError("missing argument: TITLE");
    title = await io.askText("What is wrong?", titleFault);
  }
  const wrong = titleFault(title);
  if (wrong !== undefined) throw new UsageError(`TITLE: ${wrong}`);
  const draft = { ...recovered, ...chosen, title: title.trim(), description: recovered?.description ?? "" };
  if (options.description !== undefined) draft.description = options.description;
  if (options.file !== undefined) draft.description = await readText(io, options.file, "description");
  if (options.editor) draft.description = await edited(io, "report", draft.description);
  if (draft.description.trim() !== "") draft.description = checkText(draft.description, "description");
  return draft;
}

function titleFault(title: string): string | undefined {
  if (title.trim() === "") return "the title is empty";
  if (title.trim().length > nameLength) return `the title is longer than ${nameLength} characters`;
  return /[\p{Cc}\p{Zl}\p{Zp}]/u.test(title.trim()) ? "the title must be a single line of text" : undefined;
}

async function send(
  io: Io,
  server: string | undefined,
  draft: ReportDraft,
  key: string,
  isTitleTyped: boolean,
): Promise<Incident> {
  return IncidentClient.within(io, server, async (client) => {
    const [types, priorities, commander] = await Promise.all([
      client.list<Named>("/incident_types/", { sort: "id" }),
      client.list<Named & { rank: number }>("/incident_priorities/", { sort: "id" }),
      draft.commander === undefined ? undefined : emailOf(io, client, draft.commander),
    ]);
    // With title and priority, a report is complete: what was pasted after it must not become the answer to a question.
    const isComplete = isTitleTyped && draft.priority !== undefined;
    const type = await chosenOf(io, types, draft.type, "type", isComplete);
    const isAssumed = draft.type === undefined && isComplete && types.length > 1;
    if (isAssumed && io.canAsk())
      io.stderr.write(`Type: ${printable(type.name, 80)} (-t TYPE for another)\n`);
    draft.type = type.name;
    const urgentFirst = priorities.sort((a, b) => b.rank - a.rank);
    const priority = await chosenOf(io, urgentFirst, draft.priority, "priority");
    draft.priority = priority.name;
    const { title, description } = draft;
    const incident = await client.post<Incident>(
      "/incidents/",
      {
        ...{ title, description, incident_type_id: type.id, incident_priority_id: priority.id },
        ...(draft.restricted ? { visibility: "Restricted" } : {}),
        ...(commander === undefined ? {} : { commander }),
      },
      { key },
    );
    if (draft.use) {
      const { id, name } = incident;
      writeDefaultIncident(io.env, { server: client.session.server.base, id, name });
    }
    return incident;
  });
}

/** The type or priority that was named, or the only one, or the one that the user chooses, or the first type. */
async function chosenOf(
  io: Io,
  items: readonly Named[],
  typed: string | undefined,
  what: "type" | "priority",
  isComplete = false,
) {
  if (typed !== undefined || items.length === 0) return pickNamed(items, typed ?? "", what);
  if (items.length === 1) return items[0]!;
  if (io.canAsk() && !isComplete)
    return io.choose(
      `Which ${what}?`,
      items.map((value) => ({ value, label: printable(value.name, 80) })),
    );
  if (what === "type") return items[0]!;
  const names = items.map(({ name }) => printable(name, 80)).join(", ");
  throw new UsageError(`missing option: --priority (${names})`);
}

function show(io: Io, incident: Incident, { quiet, json }: ReportOptions): void {
  if (!quiet) announce(io, incident);
  if (json) io.stdout.write(`${JSON.stringify(incident)}\n`);
  else if (quiet || !io.stdout.isTTY) io.stdout.write(`${incident.name}\n`);
  else io.stderr.write(`Next: svc incident watch ${incident.name}\n`);
}

/** Stores what could not be sent, and prints the command that sends it again. */
function keep(io: Io, draft: ReportDraft, key: string): void {
  const { path } = writeDraft(io.env, "report", `${JSON.stringify(draft, undefined, 2)}\n`, "json", key);
  io.stderr.write(`The report is kept. To send it: svc incident report --recover ${path}\n`);
}

async function readDraft(io: Io, file: string): Promise<ReportDraft> {
  const text = await readText(io, file, "report");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {}
  if (typeof value !== "object" || value === null) throw notDraft(file);
  const { title, description, type, priority, restricted, commander, use } = value as Record<string, unknown>;
  if (typeof title !== "string" || typeof description !== "string") throw notDraft(file);
  const word = (one: unknown) => (typeof one === "string" ? one : undefined);
  return {
    ...{ title, description, type: word(type), priority: word(priority), commander: word(commander) },
    ...{ restricted: restricted === true, use: use === true },
  };
}

function notDraft(file: string): InvalidInput {
  return new InvalidInput("recover", `${printable(file, 200)} is not a report that svc kept`);
}
