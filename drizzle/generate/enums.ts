import { isSubsequence } from "./compare.ts";
import { displayName, literal, qualified, quote, tableKey } from "./names.ts";
import type { Plan } from "./plan.ts";
import type { EnumType } from "./snapshot.ts";
import type { Statement } from "./write.ts";

/**
 * Changes existing enums. Values are added in place if possible. Otherwise the old type is renamed, the columns are
 * converted to a new one through text (columns.ts), and `endEnums` drops the old type.
 */
export function beginEnums({ before, after, changes }: Plan): Statement[] {
  const added = Object.entries(after.enums).flatMap(([key, type]) => {
    const had = before.enums[key];
    return had && !changes.remadeEnums.includes(type) ? addValues(had, type) : [];
  });
  const remade = changes.remadeEnums.flatMap((type) => [
    {
      sql: `ALTER TYPE ${qualified(type)} RENAME TO ${quote(aside(type))};`,
      look: isSubsequence(before.enums[tableKey(type)]!.values, type.values)
        ? [
            `a new value of ${displayName(type)} is used immediately, which PostgreSQL allows only for a new type: the tables are ` +
              "rewritten. If one is big, add the value in a revision before this one",
          ]
        : [],
    },
    `CREATE TYPE ${qualified(type)} AS ENUM(${type.values.map(literal).join(", ")});`,
  ]);
  return [...added, ...remade];
}

export function endEnums({ changes }: Plan): Statement[] {
  return changes.remadeEnums.map((type) => `DROP TYPE ${qualified({ ...type, name: aside(type) })};`);
}

/** The values of the old type that the new one lacks. */
export function removedValues(had: EnumType | undefined, has: EnumType | undefined): string[] {
  return had?.values.filter((value) => !has?.values.includes(value)) ?? [];
}

const aside = ({ name }: EnumType) => `${[...name].slice(0, 50).join("")}__old`;

function addValues(had: EnumType, type: EnumType): Statement[] {
  const present = [...had.values];
  return type.values.flatMap((value, at) => {
    if (present.includes(value)) return [];
    present.push(value);
    // The value before it exists by now; the one after it may not.
    const previous = type.values[at - 1];
    const next = had.values[0];
    const place =
      previous !== undefined ? ` AFTER ${literal(previous)}` : next ? ` BEFORE ${literal(next)}` : "";
    return [`ALTER TYPE ${qualified(type)} ADD VALUE ${literal(value)}${place};`];
  });
}
