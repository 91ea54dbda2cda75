import {
  ConfigurationError,
  Forbidden,
  InvalidInput,
  NotFound,
  Unauthenticated,
} from "../../platform/errors.ts";
import { nameLength } from "../../platform/text.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { printable, printableLines, printJson, shellWord } from "../text.ts";
import { overridden, writeDefaultIncident } from "./default.ts";
import { proposedLines } from "./doc.ts";
import { draftKey, removeDraft, writeDraft } from "./drafts.ts";
import { editDraft } from "./editor.ts";
import { hasFormOfId } from "./id.ts";
import { type Incident, IncidentClient, type Named, pickNamed, printIncident } from "./incident.ts";
import { emailOf, fullNameOf } from "./people.ts";
import { againLine, checked, option, sourceOf, wordAndDash } from "./write.ts";
import { checkText, readText } from "./written_text.ts";

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

interface ReportOptions extends Partial<ReportDraft> {
  /** `-`, after the title. */
  dash?: string;
  file?: string;
  editor?: boolean;
  quiet?: boolean;
  recover?: string;
  json?: boolean;
}

/** `svc incident report` */
export async function reportCommand(typed: ReportOptions, io: Io): Promise<void> {
  const { word, file: given } = wordAndDash(typed.title, typed.dash, typed);
  if (word !== undefined && hasFormOfId(word))
    throw new UsageError(
      `TITLE: ${printable(word, 100)} is an incident; to write a status report on it: svc incident update ${shellWord(word)}`,
    );
  const { text, file } = sourceOf(typed.description, given, typed.editor, "--description");
  const options = { ...typed, title: word, description: file === undefined ? text : undefined, file };
  const recovered = options.recover === undefined ? undefined : await readDraft(io, options.recover);
  const key = (options.recover && draftKey(io.env, options.recover)) || crypto.randomUUID();
  const title = await titleOf(options, recovered, io);
  const written = await descriptionOf(options, recovered, title, io);
  const draft = draftOf(options, recovered, title, written.text);
  const keepReport = () => {
    if (keep(io, draft, key)) written.remove();
  };
  let sent: Awaited<ReturnType<typeof send>>;
  const stopListening = io.onExit(keepReport);
  try {
    sent = await send(io, draft, key, options.title !== undefined);
  } catch (error) {
    // The user can repeat an invalid command line, unless part of the report was written elsewhere.
    const isTyped =
      options.title !== undefined && !options.editor && options.file !== "-" && options.recover === undefined;
    if (!(isTyped && isFaultOf(error))) keepReport();
    throw error;
  } finally {
    stopListening();
  }
  written.remove();
  if (options.recover !== undefined) removeDraft(io.env, options.recover);
  const { incident, base } = sent;
  show(io, incident, options);
  if (!options.quiet) {
    await showAssigned(io, incident);
    if (!options.json && io.stdout.isTTY) io.stderr.write(`Next: svc incident watch ${incident.name}\n`);
  }
  if (draft.use) use(io, incident, base);
}

/** Only warns if the choice cannot be stored: a script that repeated the command would report the incident again. */
function use(io: Io, { id, name }: Incident, server: string): void {
  try {
    writeDefaultIncident(io.env, { server, id, name });
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    io.stderr.write(`svc: warning: ${printable(error.detail)}; ${name} is not in use\n`);
    return;
  }
  const note = overridden(io.env);
  if (note !== undefined) io.stderr.write(`${note}\n`);
}

/** Whether the command line is at fault: repeating it unchanged would not help. */
function isFaultOf(error: unknown): boolean {
  const faults = [UsageError, NotFound, InvalidInput, Forbidden, Unauthenticated];
  return faults.some((fault) => error instanceof fault);
}

async function titleOf({ title: typed }: ReportOptions, recovered: ReportDraft | undefined, io: Io) {
  let title = typed ?? recovered?.title;
  if (title === undefined) {
    if (!io.canAsk()) throw new UsageError("missing argument: TITLE");
    title = await io.askText("What is wrong?", titleFault);
  }
  const wrong = titleFault(title);
  if (wrong !== undefined) throw new UsageError(`TITLE: ${wrong}`);
  return title.trim();
}

/** Returns the description. `remove` removes the editor's file, once the text is stored elsewhere. */
async function descriptionOf(
  options: ReportOptions,
  recovered: ReportDraft | undefined,
  title: string,
  io: Io,
) {
  let text = options.description ?? recovered?.description ?? "";
  const { file } = options;
  if (file !== undefined) text = await readText(io, file, "description");
  const isEmpty = () => text.trim() === "";
  if (!options.editor) {
    const remove = () => file !== undefined && removeDraft(io.env, file);
    return { text: isEmpty() ? "" : checkText(text, "description"), remove };
  }
  const { type, priority, commander, restricted, use } = draftOf(options, recovered, title, text);
  const again = againLine(io, [
    ...["report", title, ...option("--type", type), ...option("--priority", priority)],
    ...option("--commander", commander),
    ...[restricted ? "--restricted" : undefined, use ? "--use" : undefined],
  ]);
  const edited = await editDraft(io, "report", text, again);
  text = edited.text;
  const remove = () => removeDraft(io.env, edited.draft.path);
  return { text: isEmpty() ? "" : checked(io, text, "description", edited.draft, again).text, remove };
}

function draftOf(
  { type, priority, restricted, commander, use }: ReportOptions,
  recovered: ReportDraft | undefined,
  title: string,
  description: string,
): ReportDraft {
  const kind = { type, priority, restricted, commander, use };
  const chosen = Object.fromEntries(Object.entries(kind).filter(([, value]) => value !== undefined));
  return { ...recovered, ...chosen, title, description };
}

function titleFault(title: string): string | undefined {
  if (title.trim() === "") return "the title is empty";
  if (title.trim().length > nameLength) return `the title is longer than ${nameLength} characters`;
  return /[\p{Cc}\p{Zl}\p{Zp}]/u.test(title.trim()) ? "the title must be a single line of text" : undefined;
}

async function send(
  io: Io,
  draft: ReportDraft,
  key: string,
  isTitleTyped: boolean,
): Promise<{ incident: Incident; base: string }> {
  return IncidentClient.within(io, async (client) => {
    const [types, priorities, commander] = await Promise.all([
      client.list<Named>("/incident_types/", { sort: "id" }),
      client.list<Named & { rank: number }>("/incident_priorities/", { sort: "id" }),
      draft.commander === undefined ? undefined : emailOf(io, client, draft.commander),
    ]);
    // With title and priority, a report is complete: lines pasted after it must not become answers to questions.
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
        title,
        description,
        incident_type_id: type.id,
        incident_priority_id: priority.id,
        ...(draft.restricted ? { visibility: "Restricted" } : {}),
        ...(commander === undefined ? {} : { commander }),
      },
      { key },
    );
    return { incident, base: client.session.server.base };
  });
}

/** Returns the type or priority that was named, else the only one, else the one that the user chooses, else the first type. */
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
  if (!quiet) printIncident(io, incident);
  // Its type may have decided that.
  if (!quiet && incident.visibility === "Restricted")
    io.stderr.write(`${incident.name} is Restricted: only its participants and admins can see it\n`);
  if (json) printJson(io, incident);
  else if (quiet || !io.stdout.isTTY) io.stdout.write(`${incident.name}\n`);
}

/** Who commands it, and which documents may help. The server has usually found both when it answers the report. */
async function showAssigned(io: Io, { id, name }: Incident): Promise<void> {
  const find = IncidentClient.within(io, (client) => client.get(String(id)));
  const found = await find.catch(() => undefined);
  if (found === undefined) return;
  const { commander } = found;
  const who = commander ? fullNameOf(commander) : `not found yet (svc incident view ${name})`;
  for (const line of [`Commander: ${who}`, ...proposedLines(found)]) io.stderr.write(`${line}\n`);
}

/** Stores a report that could not be sent, and prints the command that sends it again. @returns whether that worked */
function keep(io: Io, draft: ReportDraft, key: string): boolean {
  try {
    const { path } = writeDraft(io.env, "report", `${JSON.stringify(draft, undefined, 2)}\n`, "json", key);
    const again = againLine(io, ["report", "--recover", path]);
    io.stderr.write(`The report is kept. To send it: ${again}\n`);
    return true;
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    io.stderr.write(`The report could not be kept: ${error.detail}. This is its description:\n`);
    for (const line of printableLines(draft.description)) io.stderr.write(`${line}\n`);
    return false;
  }
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
    title,
    description,
    type: word(type),
    priority: word(priority),
    commander: word(commander),
    restricted: restricted === true,
    use: use === true,
  };
}

function notDraft(file: string): InvalidInput {
  return new InvalidInput("recover", `${printable(file, 200)} is not a report that svc kept`);
}
