import { qualified, quote } from "./names.ts";
import type { Column } from "./snapshot.ts";

/** A parsed type: `varchar(20)[]` is varchar, [20], 1. */
export interface Type {
  /** PostgreSQL's usual name; for an enum, its name in SQL. */
  base: string;
  args: number[];
  dimensions: number;
  isEnum: boolean;
}

const aliases: Record<string, string> = {
  int: "integer",
  int2: "smallint",
  int4: "integer",
  int8: "bigint",
  smallserial: "smallint",
  serial: "integer",
  bigserial: "bigint",
  bool: "boolean",
  decimal: "numeric",
  "character varying": "varchar",
  character: "char",
  float4: "real",
  float8: "double precision",
  "timestamp with time zone": "timestamptz",
  "timestamp without time zone": "timestamp",
  "time with time zone": "timetz",
  "time without time zone": "time",
};

export function isSerial(column: Column): boolean {
  return /^(small|big)?serial$/.test(column.type);
}

export function isArray(column: Column): boolean {
  return /\]$/.test(column.type);
}

/** The type as SQL. Keeps serial types, which CREATE TABLE and ADD COLUMN accept. */
export function typeName(column: Column): string {
  const { base, brackets } = elementOf(column.type);
  if (column.typeSchema) return qualified({ schema: column.typeSchema, name: base }) + brackets;
  const isPlain = /^([a-z_][a-z0-9_. ]*(\([^()]*\))?[a-z ]*|".*")$/.test(base);
  return (isPlain ? base.replace(/ +\(/, "(") : quote(base)) + brackets;
}

/** The type of the column's values: integer for a serial. */
export function valueType(column: Column): string {
  return isSerial(column) ? aliases[column.type]! : typeName(column);
}

export function parseType(column: Column): Type {
  const { base, brackets } = elementOf(column.type);
  const dimensions = brackets.split("[").length - 1;
  if (column.typeSchema) {
    const name = qualified({ schema: column.typeSchema, name: base });
    return { base: name, args: [], dimensions, isEnum: true };
  }
  const args =
    base
      .match(/\(([^()]*)\)/)?.[1]
      ?.split(",")
      .map(Number) ?? [];
  const word = base
    .toLowerCase()
    .replace(/\s*\([^()]*\)/, "")
    .replace(/\s+/g, " ")
    .trim();
  return { base: aliases[word] ?? word, args, dimensions, isEnum: false };
}

function elementOf(type: string): { base: string; brackets: string } {
  const brackets = type.match(/(\[\d*\])+$/)?.[0] ?? "";
  return { base: type.slice(0, type.length - brackets.length), brackets };
}
