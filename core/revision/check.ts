import { openSql, type Sql } from "../../drizzle/sql.ts";
import { errorCode, operatorsError } from "../database_error.ts";
import { SvcError, Unavailable } from "../errors.ts";
import { hasSourceTree } from "../source_tree.ts";
import { canonicalSchema } from "./canonical.ts";
import { pendingSql } from "./create.ts";
import { inOrder } from "./graph.ts";
import { checkStatements, readMarks } from "./marks.ts";
import { oneHead } from "./plan.ts";
import { type Revision, readRevisions } from "./read.ts";
import { setUp } from "./session.ts";
import { readApplied } from "./store.ts";
import { upgrade } from "./upgrade.ts";

/** One thing that is not as it should be: a line, and what belongs to it. */
export interface Finding {
  text: string;
  details: string[];
}

/** Whether revisions can be run, have one head, and lead to what drizzle/schema says. Asks no database. */
export async function checkRevisions(): Promise<Finding[]> {
  const revisions = await readRevisions();
  const findings = [
    ...attempt(() => inOrder(revisions)),
    ...attempt(() => oneHead(revisions)),
    ...revisions.flatMap(checkRevision),
  ];
  if (findings.length > 0 || !hasSourceTree) return findings;
  const sql = await pendingSql();
  if (sql === "") return [];
  const text = "drizzle/schema has changes without a revision: svc database revision --autogenerate -m TEXT";
  return [{ text, details: sql.trim().split("\n") }];
}

function checkRevision({ id, up, down }: Revision): Finding[] {
  return Object.entries({ up, down }).flatMap(([name, text]) =>
    attempt(() => checkStatements(`${name}.sql of revision ${id}`, text, readMarks(text))),
  );
}

function attempt(check: () => unknown): Finding[] {
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof SvcError) return [{ text: error.detail, details: [] }];
    throw error;
  }
}

/**
 * Whether the database has the very schema that its revisions make: compares it, object by object, with a new database
 * beside it that is brought there and dropped again. Lines with `-` are missing, lines with `+` are too many.
 *
 * @throws Unavailable when the user may not create a database; see also `upgrade`
 */
export async function findDrift(url: string): Promise<string[]> {
  const known = await readRevisions();
  const sql = openSql(url, { max: 1, fetch_types: false });
  const scratch = `svc_check_${crypto.randomUUID().slice(0, 8)}`;
  try {
    await setUp(sql);
    const applied = (await readApplied(sql)) ?? [];
    const there = new Set(applied.map(({ id }) => id));
    const unknown = applied.find(({ id }) => !known.some((revision) => revision.id === id));
    if (unknown)
      throw new Unavailable(
        `Revision ${unknown.id} is not known to this release: check with the one that has it`,
      );
    const actual = await canonicalSchema(sql);
    await createScratch(sql, scratch);
    const target = new URL(url);
    target.pathname = `/${scratch}`;
    const revisions = known.filter(({ id }) => there.has(id));
    if (revisions.length > 0) await upgradeAll(target.href, revisions);
    const copy = openSql(target.href, { max: 1, fetch_types: false });
    try {
      await setUp(copy);
      return difference(await canonicalSchema(copy), actual);
    } finally {
      await copy.end({ timeout: 5 });
    }
  } catch (error) {
    throw operatorsError(error);
  } finally {
    await sql`drop database if exists ${sql(scratch)} with (force)`.catch(() => {});
    await sql.end({ timeout: 5 });
  }
}

/** Also lines that were not joined yet. */
async function upgradeAll(url: string, revisions: readonly Revision[]): Promise<void> {
  for (const { id } of inOrder(revisions)) await upgrade({ url, revisions, target: id, allowDataLoss: true });
}

async function createScratch(sql: Sql, name: string): Promise<void> {
  try {
    await sql`create database ${sql(name)} template template0`;
  } catch (error) {
    if (errorCode(error) !== "42501") throw error;
    throw new Unavailable("--drift needs the right to create a database: alter role NAME createdb", {
      cause: error,
    });
  }
}

function difference(expected: string, actual: string): string[] {
  const [want, have] = [expected, actual].map((text) => new Set(text.split("\n").filter(Boolean))) as [
    Set<string>,
    Set<string>,
  ];
  return [
    ...[...want.difference(have)].map((line) => `- ${line}`),
    ...[...have.difference(want)].map((line) => `+ ${line}`),
  ].sort((a, b) => (a.slice(2) < b.slice(2) ? -1 : 1));
}
