import { type Changes, missing, type TableChanges } from "./compare.ts";
import { displayName, qualified, quote } from "./names.ts";
import type { Plan } from "./plan.ts";
import type { Statement } from "./write.ts";

/**
 * Drops objects, dependents first: views, foreign keys, tables, constraints and indexes, columns. Each is named
 * explicitly: DROP TABLE ... CASCADE would also drop objects that no one has reviewed.
 */
export function dropSteps({ changes }: Plan): Statement[] {
  return [
    ...dropOuter(changes),
    ...changes.goneTables.map((table) => ({
      sql: `DROP TABLE ${qualified(table)};`,
      loss: [`table ${displayName(table)}`],
    })),
    ...changes.tables.flatMap((table) => {
      const place = qualified(table.after);
      const constraints = [...table.checks.gone, ...table.uniques.gone];
      if (table.gonePrimaryKey) constraints.push(table.gonePrimaryKey.name);
      return [
        ...table.policies.gone.map((name) => `DROP POLICY ${quote(name)} ON ${place};`),
        ...table.indexes.gone.map((name) => `DROP INDEX ${qualified({ schema: table.after.schema, name })};`),
        ...constraints.map((name) => `ALTER TABLE ${place} DROP CONSTRAINT ${quote(name)};`),
      ];
    }),
    ...changes.tables.flatMap(freeGenerated),
    ...changes.tables.flatMap((table) => {
      const drop = (name: string) => `ALTER TABLE ${qualified(table.after)} DROP COLUMN ${quote(name)};`;
      const isDerived = (name: string) => table.before.columns[name]?.generated !== undefined;
      const loss = (name: string) => (isDerived(name) ? [] : [`column ${displayName(table.after, name)}`]);
      // Generated columns come first.
      const order = [...table.gone, ...table.remade].toSorted(
        (a, b) => Number(isDerived(b)) - Number(isDerived(a)),
      );
      return order.map((name) => ({ sql: drop(name), loss: loss(name) }));
    }),
  ];
}

/** Generated columns that become plain ones keep their values, and no longer depend on their sources. */
function freeGenerated({ before, after }: TableChanges): Statement[] {
  return Object.values(after.columns)
    .filter((column) => before.columns[column.name]?.generated && !column.generated)
    .map(({ name }) => `ALTER TABLE ${qualified(after)} ALTER COLUMN ${quote(name)} DROP EXPRESSION;`);
}

function dropOuter({ goneViews, goneKeys }: Changes): Statement[] {
  return [
    ...goneViews.map((view) => `DROP ${view.materialized ? "MATERIALIZED " : ""}VIEW ${qualified(view)};`),
    ...goneKeys.map(
      ({ table, key }) => `ALTER TABLE ${qualified(table)} DROP CONSTRAINT ${quote(key.name)};`,
    ),
  ];
}

/** Drops unused enums. Runs before tables are created, because a table and a type cannot share a name. */
export function dropEnums({ before, after }: Plan): Statement[] {
  return missing(before.enums, after.enums).map((type) => `DROP TYPE ${qualified(type)};`);
}

/** Drops what tables and columns may have depended on until now. */
export function dropRest({ before, after }: Plan): Statement[] {
  return [
    ...missing(before.sequences, after.sequences).map((sequence) => ({
      sql: `DROP SEQUENCE ${qualified(sequence)};`,
      loss: [`position of sequence ${displayName(sequence)}`],
    })),
    ...missing(before.schemas, after.schemas).map((name) => `DROP SCHEMA ${quote(name)};`),
  ];
}
