import { isSubsequence, type Plan } from "./compare.ts";
import { displayName, literal, qualified, quote, tableKey } from "./names.ts";
import type { EnumType } from "./snapshot.ts";
import type { Walk } from "./walk.ts";
import type { Step } from "./write.ts";

/**
 * Changes existing enums. drizzle-kit adds values in place if possible. Otherwise the old type is renamed, the columns are
 * converted to a new one through text (columns.ts), and `endEnums` drops the old type.
 */
export async function beginEnums(walk: Walk, { before, after, remadeEnums }: Plan): Promise<void> {
  for (const type of remadeEnums) {
    const isAdded = isSubsequence(before.enums[tableKey(type)]!.values, type.values);
    const look =
      `a new value of ${displayName(type)} is used immediately, which PostgreSQL allows only for a new type: the tables ` +
      "are rewritten. If one is big, add the value in a revision before this one";
    walk.say(
      [
        {
          sql: `ALTER TYPE ${qualified(type)} RENAME TO ${quote(aside(type))};`,
          look: isAdded ? [look] : [],
        },
        { sql: `CREATE TYPE ${qualified(type)} AS ENUM(${type.values.map(literal).join(", ")});` },
      ],
      (at) => {
        at.enums[tableKey(type)] = type;
      },
    );
  }
  await walk.to((at) => {
    at.enums = { ...at.enums, ...after.enums };
  });
}

export function endEnums({ remadeEnums }: Plan): Step[] {
  return remadeEnums.map((type) => ({ sql: `DROP TYPE ${qualified({ ...type, name: aside(type) })};` }));
}

/** The values of the old type that the new one lacks. */
export function removedValues(had: EnumType | undefined, has: EnumType | undefined): string[] {
  return had?.values.filter((value) => !has?.values.includes(value)) ?? [];
}

const aside = ({ name }: EnumType) => `${[...name].slice(0, 50).join("")}__old`;
