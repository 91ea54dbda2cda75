import { drizzle } from "drizzle-orm/postgres-js";
import { readConfig } from "../../core/config.ts";
import type { Actor, Context } from "../../core/context.ts";
import { listDocuments } from "../../core/incident/document/list.ts";
import { listIncidents } from "../../core/incident/incident/list.ts";
import { searchAll } from "../../core/incident/search/search.ts";
import { listTasks } from "../../core/incident/task/list.ts";
import { openSql, type Sql } from "../../drizzle/client.ts";
import * as schema from "../../drizzle/schema/index.ts";
import { systemClock } from "../../platform/clock.ts";
import { createLog } from "../../platform/log.ts";
import { BenchError } from "../support.ts";
import { email, type Size } from "./data.ts";
import { words } from "./requests.ts";

/** How PostgreSQL executed one list. */
interface Plan {
  name: string;
  milliseconds: number;
  scans: Scan[];
}

interface Scan {
  type: string;
  relation: string;
  index: string | undefined;
  /** Rows read, including those that were filtered out. */
  rows: number;
}

interface Node {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  "Actual Rows": number;
  "Actual Loops": number;
  "Rows Removed by Filter"?: number;
  Plans?: Node[];
}

/** Tables with fewer rows than this may be scanned sequentially. */
const largeTable = 5000;

/**
 * Prints the query plan of each list, for a member and for an admin.
 * @throws BenchError when a list scans a large table sequentially
 */
export async function explainLists(url: string, size: Size): Promise<void> {
  const sql = openSql(url, { max: 1 });
  const asked: { text: string; parameters: unknown[] }[] = [];
  const recorder = openSql(url, {
    max: 1,
    debug: (_, text, parameters) => void asked.push({ text, parameters }),
  });
  try {
    const context: Context = {
      db: drizzle(recorder, { schema }),
      clock: systemClock,
      config: readConfig({}),
      log: createLog("warn"),
    };
    const large = await largeTables(sql);
    // Triggers the client's own initial queries.
    await recorder`select 1`;
    console.log("plans    of each list: time, and what was read (index, or SEQUENTIAL)");
    const faults: string[] = [];
    for (const admin of [false, true]) {
      for (const [what, read] of readers(context, reader(admin), size)) {
        asked.length = 0;
        await read();
        const name = `${admin ? "admin " : "member"} ${what}`;
        for (const { text, parameters } of asked) {
          const plan = await explain(sql, name, text, parameters);
          print(plan);
          if (plan.scans.some(({ type, relation }) => type === "Seq Scan" && large.has(relation)))
            faults.push(name);
        }
      }
    }
    console.log("");
    if (faults.length > 0)
      throw new BenchError(`a large table is scanned sequentially: ${faults.join("; ")}`);
  } finally {
    await Promise.all([sql.end({ timeout: 5 }), recorder.end({ timeout: 5 })]);
  }
}

function reader(admin: boolean): Actor {
  const expiresAt = new Date(8.64e15);
  return { kind: "user", user: email(1), groups: [], admin, tokenId: "", expiresAt };
}

function readers(context: Context, actor: Actor, { incidents }: Size): [string, () => Promise<unknown>][] {
  const user = email(2);
  const incidentFilters: Parameters<typeof listIncidents>[2][] = [
    {},
    { sort: "id" },
    { statuses: ["Active"] as const },
    { statuses: ["Closed"] as const },
    { visibility: "Restricted" as const },
    { incidentTypeId: 3 },
    { incidentPriorityId: 2 },
    { commander: user },
    { participant: user },
    { reportedBefore: new Date(Date.UTC(2025, 0, 1)) },
  ];
  const documentFilters: Parameters<typeof listDocuments>[2][] = [
    {},
    { sort: "name" },
    { incidentId: Math.trunc(incidents / 2) },
    { resourceType: "review" },
    { name: "no such" },
  ];
  const taskFilters: Parameters<typeof listTasks>[2][] = [
    {},
    { incidentId: Math.trunc(incidents / 2) },
    { status: "Open" as const },
    { owner: user },
    { assignee: user },
    { overdue: true },
  ];
  const searched = Object.entries(words).map(([kind, word]) => [kind, { q: word(3) }] as const);
  const text = (value: object) => JSON.stringify(value).replaceAll('"', "");
  const nextPage = async () => {
    const { next_cursor } = await listIncidents(context, actor, {});
    await listIncidents(context, actor, { cursor: next_cursor ?? undefined });
  };
  return [
    ...incidentFilters.map(
      (query) => [`incidents ${text(query)}`, () => listIncidents(context, actor, query)] as const,
    ),
    ["incidents next page", nextPage] as const,
    ...documentFilters.map(
      (query) => [`documents ${text(query)}`, () => listDocuments(context, actor, query)] as const,
    ),
    ...taskFilters.map((query) => [`tasks ${text(query)}`, () => listTasks(context, actor, query)] as const),
    ...searched.flatMap(([kind, query]) => [
      [`incidents q: ${kind}`, () => listIncidents(context, actor, query)] as const,
      [`documents q: ${kind}`, () => listDocuments(context, actor, query)] as const,
      [`tasks q: ${kind}`, () => listTasks(context, actor, query)] as const,
      [`search q: ${kind}`, () => searchAll(context, actor, query)] as const,
    ]),
  ].map(([name, read]) => [name, read]);
}

async function largeTables(sql: Sql): Promise<Set<string>> {
  const rows = await sql`select relname from pg_class where relkind = 'r' and reltuples >= ${largeTable}`;
  return new Set(rows.map(({ relname }) => relname));
}

async function explain(sql: Sql, name: string, text: string, parameters: unknown[]): Promise<Plan> {
  const statement = `explain (analyze, timing off, format json) ${text}`;
  // Runs it twice, because the first run reads from the disk.
  await sql.unsafe(statement, parameters as string[]);
  const [row] = await sql.unsafe(statement, parameters as string[]);
  const [{ Plan: root, "Execution Time": milliseconds }] = row!["QUERY PLAN"];
  return { name, milliseconds, scans: scansOf(root) };
}

/** The scans that were executed. */
function scansOf(node: Node): Scan[] {
  const {
    "Node Type": type,
    "Relation Name": relation = "",
    "Index Name": index,
    "Actual Loops": loops,
  } = node;
  if (loops === 0) return [];
  const rows = Math.round((node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * loops);
  const own = type.endsWith("Scan") && (relation || index) ? [{ type, relation, index, rows }] : [];
  return [...own, ...(node.Plans ?? []).flatMap(scansOf)];
}

function print({ name, milliseconds, scans }: Plan): void {
  const read = new Map<string, number>();
  for (const { type, relation, index, rows } of scans) {
    // Its index scan is reported instead.
    if (type === "Bitmap Heap Scan") continue;
    const what = type === "Seq Scan" ? `SEQUENTIAL ${relation}` : (index ?? relation);
    read.set(what, (read.get(what) ?? 0) + rows);
  }
  const most = [...read].filter(([, rows]) => rows >= 10).map(([what, rows]) => `${what} ${rows}`);
  console.log(`${name.padEnd(46)}${milliseconds.toFixed(1).padStart(7)} ms  ${most.join(", ")}`);
}
