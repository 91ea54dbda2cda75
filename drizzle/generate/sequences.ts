import { isDeepStrictEqual } from "node:util";
import { givenName, literal, qualified, quote } from "./names.ts";
import type { Column, Schema, Sequence, Table } from "./snapshot.ts";
import { valueType } from "./types.ts";
import type { Step } from "./write.ts";

/** Alters sequences whose options changed. */
export function alterSequences(before: Schema, after: Schema): Step[] {
  return Object.entries(after.sequences).flatMap(([key, sequence]) => {
    const old = before.sequences[key];
    if (!old || isDeepStrictEqual(old, sequence)) return [];
    const restart = isTighter(old, sequence) ? " RESTART" : "";
    const cycle = sequence.cycle ? " CYCLE" : " NO CYCLE";
    return [{ sql: `ALTER SEQUENCE ${qualified(sequence)}${optionsOf(sequence)}${cycle}${restart};` }];
  });
}

/** The identity clause in a column definition. */
export function identityOf({ schema }: Table, identity: NonNullable<Column["identity"]>): string {
  const name = qualified({ schema, name: identity.name });
  const options = `sequence name ${name}${optionsOf(identity)}${identity.cycle ? " CYCLE" : ""}`;
  return `GENERATED ${kindOf(identity)} AS IDENTITY (${options})`;
}

export function addIdentity(table: Table, column: Column): Step[] {
  const { identity } = column;
  if (!identity) return [];
  return [
    { sql: `${alter(table, column)} ADD ${identityOf(table, identity)};` },
    continueSequence(table, column, identity),
  ];
}

/** Expands `serial`: an integer column whose default uses a sequence owned by it. */
export function addSerial(table: Table, column: Column): Step[] {
  const sequence = serialSequence(table, column);
  const place = `${qualified(table)}.${quote(column.name)}`;
  return [
    { sql: `CREATE SEQUENCE ${sequence} AS ${valueType(column)} OWNED BY ${place};` },
    { sql: `${alter(table, column)} SET DEFAULT nextval(${literal(sequence)}::regclass);` },
    continueSequence(table, column, {}),
  ];
}

export function dropSerial(table: Table, column: Column): Step[] {
  return [
    { sql: `${alter(table, column)} DROP DEFAULT;` },
    { sql: `DROP SEQUENCE ${serialSequence(table, column)};` },
  ];
}

export function retypeSerial(table: Table, column: Column): Step[] {
  return [{ sql: `ALTER SEQUENCE ${serialSequence(table, column)} AS ${valueType(column)};` }];
}

function serialSequence(table: Table, column: Column): string {
  return qualified({ schema: table.schema, name: givenName(table.name, column.name, "seq") });
}

const alter = (table: Table, column: Column) =>
  `ALTER TABLE ${qualified(table)} ALTER COLUMN ${quote(column.name)}`;

const kindOf = ({ type }: { type: string }) => (type === "always" ? "ALWAYS" : "BY DEFAULT");

/** Rows may already contain numbers, which the sequence must not return again. */
function continueSequence(table: Table, column: Column, { increment, startWith }: Partial<Sequence>): Step {
  const isDown = Number(increment ?? 1) < 0;
  const last = `${isDown ? "min" : "max"}(${quote(column.name)})`;
  const sequence = `pg_get_serial_sequence(${literal(qualified(table))}, ${literal(column.name)})`;
  const having = `${last} ${isDown ? "<=" : ">="} ${startWith ?? "1"}`;
  return { sql: `SELECT setval(${sequence}, ${last}) FROM ${qualified(table)} HAVING ${having};` };
}

/** PostgreSQL rejects bounds that exclude a sequence's position, so it is restarted. */
function isTighter(had: Sequence, has: Sequence): boolean {
  const number = (text: string | undefined) => BigInt(text ?? "0");
  return number(has.minValue) > number(had.minValue) || number(has.maxValue) < number(had.maxValue);
}

function optionList({ increment, minValue, maxValue, startWith, cache }: Sequence): string[] {
  return [
    ...(increment ? [`INCREMENT BY ${increment}`] : []),
    ...(minValue ? [`MINVALUE ${minValue}`] : []),
    ...(maxValue ? [`MAXVALUE ${maxValue}`] : []),
    ...(startWith ? [`START WITH ${startWith}`] : []),
    ...(cache ? [`CACHE ${cache}`] : []),
  ];
}

export const optionsOf = (sequence: Sequence) =>
  optionList(sequence)
    .map((option) => ` ${option}`)
    .join("");
