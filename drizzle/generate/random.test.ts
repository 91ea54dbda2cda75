import { expect, test } from "bun:test";
import fc from "fast-check";
import { rowsFor, schemaPair } from "../../tests/support/database/random_schema.ts";
import { type Names, renamesOf, tablesOf } from "../../tests/support/database/random_tables.ts";
import { tripDatabase } from "../../tests/support/database/round_trip.ts";
import { effort } from "../../tests/support/effort.ts";

const { trip } = tripDatabase();

const numRuns = effort(15);

test(
  "from any schema to any other, down and up again",
  async () => {
    let irreversible = 0;
    await fc.assert(
      fc.asyncProperty(schemaPair, fc.boolean(), async ([from, to], renaming) => {
        const names: Names = renaming ? { "t 2": 'o"t', n1: "m 1", f1: "ff" } : {};
        const steps = await trip(tablesOf(from), tablesOf(to, names), {
          seed: rowsFor(from, to),
          renames: renamesOf(from, to, names),
        });
        if (steps.irreversible) irreversible += 1;
      }),
      { numRuns },
    );
    // A test in which most runs are irreversible has tested little.
    expect(irreversible).toBeLessThan(numRuns / 2);
  },
  60_000 + numRuns * 3000,
);
