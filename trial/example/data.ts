import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { getTableColumns, getTableName } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import * as tables from "../../drizzle/schema/index.ts";
import { sha256 } from "../../platform/secret.ts";

// The example is the files in data/: three months of an imaginary company's incidents.
//
// <table>.jsonl   The rows of a table, one per line. Columns that are null or have their default are omitted, as is an
//                 updatedAt that equals createdAt. A string in an id column is a name: of a type, a priority, a team, a
//                 service or a term, or a person's e-mail address up to the @.
// documents/*.md  The texts that document_content.jsonl refers to.
//
// Times are offsets from the present: `-21d 15:48:15` is 21 days, 15 hours, 48 minutes and 15 seconds ago, and
// `end of day -21d 15:48:15` the last millisecond of that day in UTC. Within a text, `${time OFFSET}` stands for
// the time, and `${day OFFSET}` for its day.

/** The tables in data/ whose rows are inserted, each after those it references. */
export const exampleTables = {
  individual: tables.individual,
  team: tables.team,
  service: tables.service,
  rotation: tables.rotation,
  rotationMember: tables.rotationMember,
  term: tables.term,
  definition: tables.definition,
  definitionTerm: tables.definitionTerm,
  application: tables.application,
  individualIncidentType: tables.individualIncidentType,
  individualIncidentPriority: tables.individualIncidentPriority,
  individualTerm: tables.individualTerm,
  teamIncidentType: tables.teamIncidentType,
  teamIncidentPriority: tables.teamIncidentPriority,
  teamTerm: tables.teamTerm,
  incident: tables.incident,
  document: tables.document,
  documentContent: tables.documentContent,
  documentIncidentType: tables.documentIncidentType,
  documentIncidentPriority: tables.documentIncidentPriority,
  documentTerm: tables.documentTerm,
  incidentTypeTemplate: tables.incidentTypeTemplate,
  participant: tables.participant,
  participantRole: tables.participantRole,
  statusReport: tables.statusReport,
  statusReportReminder: tables.statusReportReminder,
  task: tables.task,
  taskAssignee: tables.taskAssignee,
  conversation: tables.conversation,
  conversationMessage: tables.conversationMessage,
  participantGroup: tables.participantGroup,
  participantGroupMember: tables.participantGroupMember,
  recommendation: tables.recommendation,
  flowStep: tables.flowStep,
  event: tables.event,
};

/** Includes the types, which `populate` inserts: the example only adds who commands their incidents. */
const tablesOfFiles = { ...exampleTables, incidentType: tables.incidentType };

export type Row = Record<string, unknown>;
/** Rows by table, with names instead of ids. */
export type ExampleRows = Record<keyof typeof tablesOfFiles, Row[]>;
/** Contents by path within data/. */
export type ExampleFiles = Readonly<Record<string, string>>;

/** Embedded into the single executable by scripts/build.ts, as it has no source tree to read. */
declare const SVC_EXAMPLE: ExampleFiles | undefined;

const directory = join(import.meta.dir, "data");

export async function readExample(): Promise<ExampleFiles> {
  if (typeof SVC_EXAMPLE !== "undefined") return SVC_EXAMPLE;
  const names = (await readdir(directory, { recursive: true })).filter((name) => /\.(jsonl|md)$/.test(name));
  const read = async (name: string) => {
    const text = await readFile(join(directory, name), "utf8");
    // Windows separates folders by a backslash, and git may have converted line endings.
    return [name.replaceAll("\\", "/"), text.replaceAll("\r\n", "\n")] as const;
  };
  return Object.fromEntries(await Promise.all(names.sort().map(read)));
}

/**
 * The example relative to `now`.
 *
 * @throws RangeError for a missing file, an unknown column, and an invalid offset
 */
export function rowsAt(files: ExampleFiles, now: Date): ExampleRows {
  const entries = Object.entries(tablesOfFiles).map(([name, table]) => [name, readRows(files, table, now)]);
  const rows = Object.fromEntries(entries) as ExampleRows;
  const hashes = new Map<unknown, Uint8Array>();
  for (const row of rows.documentContent) {
    row.content = fillIn(fileNamed(files, `documents/${row.content}`), now);
    row.hash = sha256(row.content as string);
    hashes.set(row.documentId, row.hash as Uint8Array);
  }
  for (const row of rows.document) {
    row.contentHash = hashes.get(row.id);
    // A document that was matched with a vocabulary was matched with its current text.
    if (row.termVocabulary !== undefined) row.termContentHash = row.contentHash;
  }
  return rows;
}

function readRows(files: ExampleFiles, table: PgTable, now: Date): Row[] {
  const columns = getTableColumns(table);
  const times = Object.keys(columns).filter((key) => columns[key]?.getSQLType().startsWith("timestamp"));
  const file = `${getTableName(table)}.jsonl`;
  const lines = fileNamed(files, file).trim().split("\n");
  return lines.map((line) => {
    const row = JSON.parse(fillIn(line, now)) as Row;
    // An insert would silently ignore it.
    const unknown = Object.keys(row).find((key) => !Object.hasOwn(columns, key));
    if (unknown !== undefined) throw new RangeError(`trial/example/data/${file}: no column ${unknown}`);
    for (const key of times) if (row[key] !== undefined) row[key] = timeAt(String(row[key]), now);
    if (times.includes("updatedAt")) row.updatedAt ??= row.createdAt;
    return row;
  });
}

function fileNamed(files: ExampleFiles, path: string): string {
  const text = files[path];
  if (text === undefined) throw new RangeError(`trial/example/data/${path} is missing`);
  return text;
}

function fillIn(text: string, now: Date): string {
  return text.replace(/\$\{(time|day) ([^}]+)\}/g, (_, what, offset) => {
    const time = timeAt(offset, now).toISOString();
    return what === "day" ? time.slice(0, 10) : time;
  });
}

const offsetPattern =
  /^(?<endOfDay>end of day )?(?<sign>[+-])(?<days>\d+)d (?<time>(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)$/;

/** The time at an offset from `now`. @throws RangeError for an invalid offset */
export function timeAt(offset: string, now: Date): Date {
  const { endOfDay, sign, days, time } = offsetPattern.exec(offset)?.groups ?? {};
  if (time === undefined) throw new RangeError(`not an offset such as -21d 15:48:15: ${offset}`);
  const distance = Number(days) * 86_400_000 + Date.parse(`1970-01-01T${time}Z`);
  const at = new Date(now.getTime() + (sign === "-" ? -distance : distance));
  if (endOfDay !== undefined) at.setUTCHours(23, 59, 59, 999);
  return at;
}
