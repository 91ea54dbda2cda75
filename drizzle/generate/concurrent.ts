import { InvalidInput } from "../../platform/errors.ts";
import { type Statement, write } from "./write.ts";

const mark = "-- svc: no-transaction\n";
const makes = /^CREATE (UNIQUE )?INDEX CONCURRENTLY (.+?) ON /;

/**
 * Both directions as files. CREATE INDEX CONCURRENTLY runs in no transaction, so such a file holds nothing else.
 * @throws InvalidInput when up has more to do
 */
export function writeBoth(
  up: readonly Statement[],
  down: readonly Statement[],
): { up: string; down: string } {
  const [index] = up.flatMap(({ sql }) => makes.exec(sql)?.[2] ?? []);
  if (index !== undefined && up.length > 1) {
    throw new InvalidInput(
      "schema",
      `Index ${index} is to be made CONCURRENTLY, which no transaction allows: give it a revision of its own`,
    );
  }
  const [only, ...others] = down;
  if (!only || others.length > 0) {
    // What up takes its time for, down need not: better within the transaction than not at all.
    const plain = down.map((step) => ({
      ...step,
      sql: step.sql.replace(/^(CREATE (?:UNIQUE )?INDEX) CONCURRENTLY/, "$1"),
    }));
    return { up: (index === undefined ? "" : mark) + write(up), down: write(plain) };
  }
  if (index !== undefined) {
    const back = { ...only, sql: only.sql.replace(/^DROP INDEX/, "DROP INDEX CONCURRENTLY") };
    return { up: mark + write(up), down: mark + write([back]) };
  }
  return { up: write(up), down: (makes.test(only.sql) ? mark : "") + write(down) };
}
