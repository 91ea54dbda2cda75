import { enumKeyOf, isNotNull, type TableChanges } from "./compare.ts";
import { type Conversion, convert } from "./convert.ts";
import { removedValues } from "./enums.ts";
import { displayName, literal, qualified, quote } from "./names.ts";
import { impossible, type Plan } from "./plan.ts";
import { addIdentity, addSerial, alterIdentity, dropSerial, retypeSerial } from "./sequences.ts";
import type { Column, EnumType } from "./snapshot.ts";
import { isArray, isSerial, parseType, typeName, valueType } from "./types.ts";
import type { Statement } from "./write.ts";

/** Alters every remaining column, in the order that PostgreSQL requires. */
export function alterColumns(plan: Plan): Statement[] {
  return plan.changes.tables.flatMap((table) =>
    Object.keys(table.after.columns)
      .filter((name) => table.before.columns[name] && !table.remade.includes(name))
      .flatMap((name) => alterColumn(plan, table, name)),
  );
}

function alterColumn(plan: Plan, table: TableChanges, name: string): Statement[] {
  const { before, after } = table;
  const [old, now] = [before.columns[name]!, after.columns[name]!];
  const alter = `ALTER TABLE ${qualified(after)} ALTER COLUMN ${quote(name)}`;
  const statements: Statement[] = [];
  const add = (...more: Statement[]) => void statements.push(...more);
  const retyped = table.retyped.includes(name);
  const [wasSerial, serial] = [isSerial(old), isSerial(now)];

  // First removes old properties, which cannot be combined with the new ones.
  if (old.identity && !now.identity) add(`${alter} DROP IDENTITY;`);
  if (wasSerial && !serial) add(...dropSerial(after, old));
  // The default has the old type too, and PostgreSQL cannot always convert it.
  const hadDefault = old.default !== undefined;
  if (hadDefault && (retyped || now.default === undefined)) add(`${alter} DROP DEFAULT;`);
  if (retyped) add(retype(plan, table, old, now, alter));
  if (now.default !== undefined && (retyped || now.default !== old.default)) {
    add(`${alter} SET DEFAULT ${now.default};`);
  }

  const [wasNotNull, notNull] = [isNotNull(before, old), isNotNull(after, now)];
  if (notNull && !wasNotNull) {
    const look = [`fails while a row holds NULL in ${displayName(after, name)}: fill those rows first`];
    add({ sql: `${alter} SET NOT NULL;`, look });
  }
  if (wasNotNull && !notNull) add(`${alter} DROP NOT NULL;`);

  if (serial && !wasSerial) add(...addSerial(after, now));
  if (serial && wasSerial && retyped) add(...retypeSerial(after, now));
  if (now.identity && !old.identity) add(...addIdentity(after, now));
  if (now.identity && old.identity) add(...alterIdentity(after, old, now));
  return statements;
}

function retype(plan: Plan, table: TableChanges, old: Column, now: Column, alter: string): Statement {
  const place = displayName(table.after, now.name);
  const target = valueType(now);
  const conversion = convert(quote(now.name), parseType(old), parseType(now), target, plan.way);
  if (!conversion) {
    throw impossible(
      plan,
      `No conversion of ${place} from ${typeName(old)} to ${typeName(now)} is known`,
      "drop the column in one revision and add it in a second one, or add a column under another name",
    );
  }
  const { using, loss, lost, look } = ofEnum(plan, table, old, now, conversion);
  const back = `(${using ?? `${quote(now.name)}::${target}`})::${valueType(old)}`;
  const condition = lost ?? `${back} IS DISTINCT FROM ${quote(now.name)}`;
  return {
    sql: `${alter} SET DATA TYPE ${target}${using ? ` USING ${using}` : ""};`,
    loss: loss ? [`column ${place} where ${condition} -- ${loss}`] : [],
    look: look ? [`${place} ${look}`] : [],
  };
}

/** Converts between enums: decides by their values what may fail, and what replaces a removed value. */
function ofEnum(
  plan: Plan,
  { after }: TableChanges,
  old: Column,
  now: Column,
  conversion: Conversion,
): Conversion {
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
    if (!isNotNull(after, now)) return "NULL";
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
