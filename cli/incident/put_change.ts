import { Conflict } from "../../platform/errors.ts";
import { ExplainedConflict } from "../errors.ts";
import { difference } from "./difference.ts";

interface Versioned {
  version: number | string | null;
}

/** A record that a PUT replaces, and how. `F` are the fields that people change. */
export interface Replaced<T extends Versioned, F extends object> {
  fieldsOf(record: T): F;
  put(body: F & Pick<T, "version">): Promise<T>;
  refetch(): Promise<T>;
  /** What a field is called, and how its value is shown. */
  label(field: keyof F): string;
  shown(value: F[keyof F], field: keyof F): string;
}

/** What comes next if the command has no text that was kept. */
export const repeatLine = "To save yours all the same, repeat the command.";

const attempts = 10;

/**
 * Changes fields of a record that the user has seen. If somebody else has changed other fields in the meantime, both
 * changes are kept.
 *
 * @param before the fields when the user saw them, if that was before `now` was read
 * @throws ExplainedConflict if somebody else changed the same field: it shows how both versions differ
 * @throws Conflict for what the server refuses
 */
export async function putChange<T extends Versioned, F extends object>(
  now: T,
  change: Partial<F>,
  record: Replaced<T, F>,
  before: Partial<F> = record.fieldsOf(now),
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const theirs = record.fieldsOf(now);
    const clashing = (Object.keys(change) as (keyof F)[]).filter(
      (field) => !isSame(theirs[field], before[field]) && !isSame(theirs[field], change[field]),
    );
    if (clashing.length > 0) throw await bothVersions(record, theirs, change, clashing);
    try {
      return await record.put({ ...plainFields(now), ...theirs, ...change, version: now.version });
    } catch (error) {
      if (!(error instanceof Conflict) || attempt === attempts) throw error;
      const { version } = now;
      now = await record.refetch();
      // Refused for another reason.
      if (now.version === version) throw error;
    }
  }
}

/**
 * A PUT replaces the whole record, and a server of a newer release may have fields that this one does not know. Those that
 * are read-only are ignored. Lists and records are left out: an incident has long ones, which no PUT takes.
 */
function plainFields(record: object): object {
  const isPlain = (value: unknown) => value === null || typeof value !== "object";
  return Object.fromEntries(Object.entries(record).filter(([, value]) => isPlain(value)));
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

async function bothVersions<T extends Versioned, F extends object>(
  { label, shown }: Replaced<T, F>,
  theirs: F,
  yours: Partial<F>,
  clashing: readonly (keyof F)[],
): Promise<ExplainedConflict> {
  const lines = clashing.map(
    (field) => `${label(field)} has been changed by somebody else in the meantime; nothing was saved.`,
  );
  const differences: string[] = [];
  for (const field of clashing) {
    if (clashing.length > 1) differences.push(`${label(field)}:`);
    const text = shown(yours[field] as F[keyof F], field);
    differences.push(...(await difference(shown(theirs[field], field), text)));
  }
  return new ExplainedConflict(lines.join("\n"), repeatLine, differences);
}
