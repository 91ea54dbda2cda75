import { Conflict } from "../../platform/errors.ts";
import { printableLines } from "../text.ts";

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

const attempts = 10;

/**
 * Changes fields of a record that the user has seen. If somebody else has changed other fields in the meantime, both
 * changes are kept.
 *
 * @throws Conflict with both versions if somebody else changed the same field, and for what the server refuses
 */
export async function putChange<T extends Versioned, F extends object>(
  seen: T,
  change: Partial<F>,
  record: Replaced<T, F>,
): Promise<T> {
  const before = record.fieldsOf(seen);
  let now = seen;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await record.put({ ...record.fieldsOf(now), ...change, version: now.version });
    } catch (error) {
      if (!(error instanceof Conflict) || attempt === attempts) throw error;
      const { version } = now;
      now = await record.refetch();
      // Refused for another reason.
      if (now.version === version) throw error;
      const theirs = record.fieldsOf(now);
      const clashing = (Object.keys(change) as (keyof F)[]).filter(
        (field) => !isSame(theirs[field], before[field]) && !isSame(theirs[field], change[field]),
      );
      if (clashing.length > 0) throw bothVersions(record, theirs, change, clashing);
    }
  }
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function bothVersions<T extends Versioned, F extends object>(
  { label, shown }: Replaced<T, F>,
  theirs: F,
  yours: Partial<F>,
  clashing: readonly (keyof F)[],
): Conflict {
  const lines = clashing.flatMap((field) => [
    `${label(field)} has been changed by somebody else in the meantime; nothing was saved.`,
    ...version("Theirs:", shown(theirs[field], field)),
    ...version("Yours: ", shown(yours[field] as F[keyof F], field)),
  ]);
  return new Conflict(lines.join("\n"));
}

function version(heading: string, text: string): string[] {
  const [first = "", ...more] = printableLines(text);
  return [`  ${heading} ${first}`, ...more.map((line) => `          ${line}`)];
}
