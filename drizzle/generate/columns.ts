import { isDeepStrictEqual } from "node:util";
import { enumKeyOf, impossible, type Plan, type TableChanges } from "./compare.ts";
import { type Conversion, convert } from "./convert.ts";
import { removedValues } from "./enums.ts";
import { displayName, literal, qualified, quote, tableKey } from "./names.ts";
import { addIdentity, addSerial, dropSerial, retypeSerial } from "./sequences.ts";
import type { Column, EnumType } from "./snapshot.ts";
import { isArray, isSerial, parseType, typeName, valueType } from "./types.ts";
import type { Walk } from "./walk.ts";
import type { Step } from "./write.ts";

/** Alters every remaining column, in the order that PostgreSQL requires. */
export async function alterColumns(walk: Walk, plan: Plan): Promise<void> {
  const columns = Object.values(plan.tables).flatMap((table) =>
    Object.keys(table.after.columns)
      .filter((name) => table.before.columns[name] && !table.remade.includes(name))
      .map((name) => ({
        table,
        old: table.before.columns[name]!,
        now: table.after.columns[name]!,
        retyped: table.retyped.includes(name),
      })),
  );
  walk.say(
    columns.flatMap((column) => beforeDefaults(plan, column)),
    (at) => {
      for (const { table, old, now, retyped } of columns) {
        const { default: value } = old;
        at.tables[tableKey(table.after)]!.columns[now.name] = {
          ...now,
          notNull: old.notNull,
          default: retyped ? undefined : value,
        };
      }
    },
  );
  // Defaults and NOT NULL are drizzle-kit's.
  await walk.to(
    (at) => {
      for (const { table, now } of columns) at.tables[tableKey(table.after)]!.columns[now.name] = now;
    },
    ({ kind, table, name }) => {
      if (kind !== "ALTER COLUMN SET NOT NULL") return {};
      const place = displayName(plan.after.tables[table]!, name);
      return { look: [`fails while a row holds NULL in ${place}: fill those rows first`] };
    },
  );
  walk.say(columns.flatMap(afterDefaults));
}

interface Alteration {
  table: TableChanges;
  old: Column;
  now: Column;
  retyped: boolean;
}

/** Removes old properties, which cannot be combined with the new ones, and changes the type. */
function beforeDefaults(plan: Plan, { table, old, now, retyped }: Alteration): Step[] {
  const alter = `ALTER TABLE ${qualified(table.after)} ALTER COLUMN ${quote(now.name)}`;
  const isSerialNoMore = isSerial(old) && !isSerial(now);
  return [
    ...(old.identity && !isDeepStrictEqual(old.identity, now.identity)
      ? [{ sql: `${alter} DROP IDENTITY;` }]
      : []),
    ...(isSerialNoMore ? dropSerial(table.after, old) : []),
    // The default has the old type too, and PostgreSQL cannot always convert it.
    ...(retyped && old.default !== undefined ? [{ sql: `${alter} DROP DEFAULT;` }] : []),
    ...(retyped ? [retype(plan, table, old, now, alter)] : []),
  ];
}

function afterDefaults({ table: { after }, old, now, retyped }: Alteration): Step[] {
  if (isSerial(now) && !isSerial(old)) return addSerial(after, now);
  if (isSerial(now) && retyped) return retypeSerial(after, now);
  return isDeepStrictEqual(old.identity, now.identity) ? [] : addIdentity(after, now);
}

function retype(plan: Plan, table: TableChanges, old: Column, now: Column, alter: string): Step {
  const place = displayName(table.after, now.name);
  const target = valueType(now);
  const conversion = convert(quote(now.name), parseType(old), parseType(now), target, plan.way);
  if (!conversion) {
    throw impossible(plan, `No conversion of ${place} from ${typeName(old)} to ${typeName(now)} is known`);
  }
  const { using, loss, lost, look } = ofEnum(plan, old, now, conversion);
  const back = `(${using ?? `${quote(now.name)}::${target}`})::${valueType(old)}`;
  const condition = lost ?? `${back} IS DISTINCT FROM ${quote(now.name)}`;
  return {
    sql: `${alter} SET DATA TYPE ${target}${using ? ` USING ${using}` : ""};`,
    loss: loss ? [`column ${place} where ${condition} -- ${loss}`] : [],
    look: look ? [`${place} ${look}`] : [],
  };
}

/** Converts between enums: decides by their values what may fail, and what replaces a removed value. */
function ofEnum(plan: Plan, old: Column, now: Column, conversion: Conversion): Conversion {
  const [from, to] = [enumKeyOf(old), enumKeyOf(now)];
  if (!from || !to) return conversion;
  const { look: _, ...rest } = conversion;
  const [had, has] = [plan.before.enums[from], plan.after.enums[to]];
  const removed = removedValues(had, has);
  if (!had || !has || removed.length === 0) return rest;
  const values = removed.map(literal).join(", ");
  if (isArray(old) !== isArray(now)) return { ...conversion, look: `fails on ${values}` };
  const text = `${quote(now.name)}::text`;
  const loss = `${removed.length === 1 ? "value" : "values"} ${values}`;
  if (isArray(now)) {
    const kept = removed.reduce((list, value) => `array_remove(${list}, ${literal(value)})`, `${text}[]`);
    return {
      using: `${kept}::${valueType(now)}`,
      loss,
      lost: `${text}[] && ARRAY[${values}]`,
      look: `loses the elements ${values}: write what replaces them here`,
    };
  }
  const fate = (value: string) => {
    if (!now.notNull) return "NULL";
    return now.default === undefined ? literal(neighbourOf(value, had, has)) : `(${now.default})::text`;
  };
  const cases = removed.map((value) => ` WHEN ${literal(value)} THEN ${fate(value)}`).join("");
  return {
    using: `(CASE ${text}${cases} ELSE ${text} END)::${valueType(now)}`,
    loss,
    lost: `${text} IN (${values})`,
    look: `gets ${[...new Set(removed.map(fate))].join(", ")} instead of ${values}: change the CASE if that is wrong`,
  };
}

/** The nearest remaining value to a removed one, preferably the one before it. */
function neighbourOf(value: string, had: EnumType, has: EnumType): string {
  const stays = (other: string) => has.values.includes(other);
  const at = had.values.indexOf(value);
  return had.values.slice(0, at).findLast(stays) ?? had.values.slice(at).find(stays) ?? has.values[0]!;
}
