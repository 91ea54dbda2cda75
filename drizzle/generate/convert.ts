import type { Plan } from "./compare.ts";
import type { Type } from "./types.ts";

/** How a column's values are converted to another type. */
export interface Conversion {
  /** The expression for USING; undefined if an assignment cast suffices, which fails rather than truncates. */
  using?: string;
  /** Why it may fail. */
  look?: string;
  /** What is lost without an error. */
  loss?: string;
  /**
   * The SQL condition for values that lose something. By default: values that do not survive conversion there and back.
   */
  lost?: string;
}

const integers = ["smallint", "integer", "bigint"];
const floats = ["real", "double precision"];
const texts = ["text", "varchar", "char", "citext"];
const isNumber = (type: string) => integers.includes(type) || floats.includes(type) || type === "numeric";

/**
 * Plans a change of type. `column` is the quoted name, `target` the new type as SQL. `way` "undo" reverts a conversion in
 * the other direction, so that its results are converted back to the original values. Returns undefined if no value
 * could be converted.
 */
export function convert(
  column: string,
  from: Type,
  to: Type,
  target: string,
  way: Plan["way"],
): Conversion | undefined {
  if (from.dimensions === 0 && to.dimensions === 0) return convertOne(column, from, to, target, way);
  if (from.dimensions > 0 && to.dimensions > 0) {
    if (from.isEnum && to.isEnum) return throughText(`${column}::text[]`, from, to, target);
    const each = convertOne(column, from, to, target, way);
    // A conversion with an expression other than a cast cannot be applied to the elements of an array.
    const isCast =
      each?.using === undefined || /^"(?:[^"]|"")+"(::[^():]+(\([\d, ]+\))?[[\]\d]*)+$/.test(each.using);
    return each && isCast ? each : undefined;
  }
  if (to.dimensions > 0) return intoArray(column, from, to, target, way);
  return outOfArray(column, from, to, target, way);
}

function intoArray(
  column: string,
  from: Type,
  to: Type,
  target: string,
  way: Plan["way"],
): Conversion | undefined {
  const [isText, toText] = [texts.includes(from.base), texts.includes(to.base)];
  if (isText && (way === "undo" || !toText))
    return { using: `${column}::text::${target}`, look: "fails on text that is not an array such as {a,b}" };
  if (from.base !== to.base && !(isText && toText)) return undefined;
  const using = `CASE WHEN ${column} IS NULL THEN NULL ELSE ARRAY[${column}${ofOldEnum(from)}]::${target} END`;
  const lost = `${column}::${target.replace(/(\[\d*\])+$/, "")} IS DISTINCT FROM ${column}`;
  return { using, ...(isNarrower(from, to) ? { loss: "values that do not fit", lost } : {}) };
}

/** The enum may be another one of that name by then, see enums.ts. */
const ofOldEnum = ({ isEnum }: Type) => (isEnum ? "::text" : "");

/** Whether values would also be truncated or rounded when they are put into an array, or taken out of one. */
function isNarrower(from: Type, to: Type): boolean {
  return to.args.length > 0 && to.args.join() !== from.args.join();
}

function outOfArray(
  column: string,
  from: Type,
  to: Type,
  target: string,
  way: Plan["way"],
): Conversion | undefined {
  if (texts.includes(to.base)) {
    const look = to.args.length > 0 ? `fails on values longer than ${to.args[0]}` : undefined;
    // An array made from text is converted back to that text; any other is written as a literal, so that nothing is
    // lost.
    if (way === "do" || !texts.includes(from.base)) return { using: `${column}::text`, look };
    const loss = "where one element of an array ends and the next begins";
    const lost = `cardinality(${column}) <> 1 OR ${column}[1] IS NULL`;
    return { using: `array_to_string(${column}, ',')`, look, loss, lost };
  }
  if (from.base !== to.base) return undefined;
  const narrow = isNarrower(from, to) ? ` OR ${column}[1]::${target} IS DISTINCT FROM ${column}[1]` : "";
  return {
    using: from.isEnum ? `${column}[1]${ofOldEnum(from)}::${target}` : `${column}[1]`,
    loss: "all elements of an array except the first",
    lost: `cardinality(${column}) > 1${narrow}`,
  };
}

function convertOne(
  column: string,
  from: Type,
  to: Type,
  target: string,
  way: Plan["way"],
): Conversion | undefined {
  if (from.isEnum || to.isEnum) return throughText(`${column}::text`, from, to, target);
  if (texts.includes(to.base)) return toText(column, from, to, target);
  if (texts.includes(from.base)) {
    if (to.base === "bytea") return { using: `convert_to(${column}, 'UTF8')` };
    // Texts that up wrote are in canonical form already.
    const loss = way === "do" ? "the original spelling, as 007 becomes 7" : undefined;
    return {
      using: `${column}::text::${target}`,
      look: `fails on text that is not a valid ${to.base}`,
      loss,
    };
  }
  if (isNumber(from.base) && isNumber(to.base)) return betweenNumbers(from, to);
  const loss = "values that change, by rounding";
  if (from.base === to.base)
    return losesDigits(from, to) ? { loss } : { look: "fails on a value that does not fit" };
  if (from.base === "boolean" && isNumber(to.base)) return { using: `${column}::integer::${target}` };
  if (isNumber(from.base) && to.base === "boolean")
    return {
      using: `${column} <> 0`,
      loss: "all numbers except 0, which become true",
      lost: `${column} NOT IN (0, 1)`,
    };
  // Explicit, so that the result does not depend on the session's time zone.
  const utc = `${column} AT TIME ZONE 'UTC'`;
  const rounded = losesDigits(from, to)
    ? { loss, lost: `${column}::${from.base}(${to.args[0]}) <> ${column}` }
    : {};
  const pairs: Record<string, Conversion> = {
    "date timestamp": {},
    "cidr inet": {},
    "jsonb json": {},
    "inet cidr": { using: `${column}::cidr`, look: "fails on a host address" },
    "json jsonb": {
      loss: "the spelling of the JSON: order of the keys, repeated keys, space",
      lost: `${column}::text <> ${column}::${target}::text`,
    },
    "date timestamptz": {
      using: `${column}::timestamp AT TIME ZONE 'UTC'`,
      look: "assumes that the time is UTC",
    },
    "timestamp timestamptz": { using: utc, look: "assumes that the time is UTC", ...rounded },
    "timestamptz timestamp": { using: utc, look: "writes the time as UTC", ...rounded },
    "timestamptz date": {
      using: `(${utc})::date`,
      loss: "the time of day",
      lost: `(${utc})::time <> '00:00'`,
    },
    "timestamp date": { using: `${column}::date`, loss: "the time of day" },
    "timestamp time": { using: `${column}::time`, loss: "the date", lost: "true" },
  };
  return pairs[`${from.base} ${to.base}`];
}

function throughText(text: string, from: Type, to: Type, target: string): Conversion | undefined {
  const using = `${text}::${target}`;
  if (!to.isEnum) return texts.includes(to.base) ? { using } : undefined;
  if (!from.isEnum && !texts.includes(from.base)) return undefined;
  return { using, look: `fails on text that is not a valid ${to.base}` };
}

/** Truncates text that is too long; char(n) also drops trailing blanks. Both only where that is allowed. */
function toText(column: string, from: Type, to: Type, target: string): Conversion {
  const limit = to.base === "char" ? (to.args[0] ?? 1) : to.base === "varchar" ? to.args[0] : undefined;
  if (from.base === "bytea")
    return { using: `convert_from(${column}, 'UTF8')`, look: "fails on bytes that are not valid UTF-8" };
  if (!texts.includes(from.base)) {
    if (limit === undefined) return { using: `${column}::${target}` };
    // A truncated number would be wrong, so no cast is used, and PostgreSQL rejects values that are too long.
    const using = `${column}::text${from.dimensions > 0 ? "[]" : ""}`;
    return { using, look: `fails on values longer than ${limit}` };
  }
  const had = from.args[0] ?? (from.base === "char" ? 1 : Infinity);
  const losses = [
    ...(limit !== undefined && had > limit ? [`values longer than ${limit} characters`] : []),
    ...(to.base === "char" && from.base !== "char" ? ["blanks at the end"] : []),
  ];
  return losses.length > 0 ? { using: `${column}::${target}`, loss: losses.join(", ") } : {};
}

/** An assignment between numbers rounds, or fails on a value out of range. */
function betweenNumbers(from: Type, to: Type): Conversion {
  const order = [...integers, "numeric", ...floats];
  const digits = ({ args: [precision = Infinity, scale = 0] }: Type) => precision - scale;
  const isSmaller = order.indexOf(to.base) < order.indexOf(from.base) || digits(to) < digits(from);
  const look = isSmaller ? "fails on a number out of range" : undefined;
  const isExact =
    (integers.includes(from.base) && (integers.includes(to.base) || to.base === "numeric")) ||
    [
      "smallint real",
      "smallint double precision",
      "integer double precision",
      "real double precision",
    ].includes(`${from.base} ${to.base}`) ||
    (from.base === to.base && !losesDigits(from, to));
  return { look, loss: isExact ? undefined : "digits, by rounding" };
}

/** Whether a time or a number gets fewer digits after the point. */
function losesDigits(from: Type, to: Type): boolean {
  if (/^(timestamp|time|interval)/.test(to.base)) return (to.args[0] ?? 6) < (from.args[0] ?? 6);
  if (to.base !== "numeric" || to.args.length === 0) return false;
  return (to.args[1] ?? 0) < (from.args.length > 0 ? (from.args[1] ?? 0) : Infinity);
}
