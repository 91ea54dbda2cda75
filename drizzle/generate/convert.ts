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

/**
 * "undo" reverts a conversion in the other direction, so that its results are converted back to the original values.
 */
export type Way = "do" | "undo";

const integers = ["smallint", "integer", "bigint"];
const floats = ["real", "double precision"];
const texts = ["text", "varchar", "char", "citext"];
const isNumber = (type: string) => integers.includes(type) || floats.includes(type) || type === "numeric";

/**
 * Plans a change of type. `column` is the quoted name, `target` the new type as SQL. Returns undefined if no value
 * could be converted.
 */
export function convert(
  column: string,
  from: Type,
  to: Type,
  target: string,
  way: Way,
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

function intoArray(column: string, from: Type, to: Type, target: string, way: Way): Conversion | undefined {
  const isText = texts.includes(from.base);
  if (isText && (way === "undo" || !texts.includes(to.base))) {
    return {
      using: `${column}::text::${target}`,
      look: "fails on text that is not an array such as {a,b}",
    };
  }
  if (from.base !== to.base && !(isText && texts.includes(to.base))) return undefined;
  const element = target.replace(/(\[\d*\])+$/, "");
  return {
    using: `CASE WHEN ${column} IS NULL THEN NULL ELSE ARRAY[${column}${ofOldEnum(from)}]::${target} END`,
    ...(isNarrower(from, to)
      ? { loss: "values that do not fit", lost: `${column}::${element} IS DISTINCT FROM ${column}` }
      : {}),
  };
}

/** The enum may be another one of that name by then, see enums.ts. */
const ofOldEnum = ({ isEnum }: Type) => (isEnum ? "::text" : "");

/** Whether values would also be truncated or rounded when they are put into an array, or taken out of one. */
function isNarrower(from: Type, to: Type): boolean {
  return to.args.length > 0 && to.args.join() !== from.args.join();
}

function outOfArray(column: string, from: Type, to: Type, target: string, way: Way): Conversion | undefined {
  if (texts.includes(to.base)) {
    const tooLong = to.args.length > 0 ? { look: `fails on values longer than ${to.args[0]}` } : {};
    // An array made from text is converted back to that text; any other is written as a literal, so that nothing is
    // lost.
    if (way === "do" || !texts.includes(from.base)) return { using: `${column}::text`, ...tooLong };
    return {
      using: `array_to_string(${column}, ',')`,
      ...tooLong,
      loss: "where one element of an array ends and the next begins",
      lost: `cardinality(${column}) <> 1 OR ${column}[1] IS NULL`,
    };
  }
  if (from.base !== to.base) return undefined;
  return {
    using: from.isEnum ? `${column}[1]${ofOldEnum(from)}::${target}` : `${column}[1]`,
    loss: "all elements of an array except the first",
    lost: `cardinality(${column}) > 1${isNarrower(from, to) ? ` OR ${column}[1]::${target} IS DISTINCT FROM ${column}[1]` : ""}`,
  };
}

function convertOne(column: string, from: Type, to: Type, target: string, way: Way): Conversion | undefined {
  if (from.isEnum || to.isEnum) return throughText(`${column}::text`, from, to, target);
  if (texts.includes(to.base)) return toText(column, from, to, target);
  if (texts.includes(from.base)) return fromText(column, to, target, way);
  if (from.base === to.base) return sameBase(from, to);
  if (isNumber(from.base) && isNumber(to.base)) return betweenNumbers(from, to);
  const pair = `${from.base} ${to.base}`;
  if (from.base === "boolean" && isNumber(to.base)) return { using: `${column}::integer::${target}` };
  if (isNumber(from.base) && to.base === "boolean") {
    return {
      using: `${column} <> 0`,
      loss: "all numbers except 0, which become true",
      lost: `${column} NOT IN (0, 1)`,
    };
  }
  switch (pair) {
    case "date timestamp":
    case "cidr inet":
    case "jsonb json":
      return {};
    case "inet cidr":
      return { using: `${column}::cidr`, look: "fails on a host address" };
    case "json jsonb":
      return {
        loss: "the spelling of the JSON: order of the keys, repeated keys, space",
        lost: `${column}::text <> ${column}::${target}::text`,
      };
    // Explicit, so that the result does not depend on the session's time zone.
    case "date timestamptz":
      return { using: `${column}::timestamp AT TIME ZONE 'UTC'`, look: "assumes that the time is UTC" };
    case "timestamp timestamptz":
      return {
        using: `${column} AT TIME ZONE 'UTC'`,
        look: "assumes that the time is UTC",
        ...rounded(from, to),
        lost: `${column}::timestamp(${to.args[0]}) <> ${column}`,
      };
    case "timestamptz timestamp":
      return {
        using: `${column} AT TIME ZONE 'UTC'`,
        look: "writes the time as UTC",
        ...rounded(from, to),
        lost: `${column}::timestamptz(${to.args[0]}) <> ${column}`,
      };
    case "timestamptz date":
      return {
        using: `(${column} AT TIME ZONE 'UTC')::date`,
        loss: "the time of day",
        lost: `(${column} AT TIME ZONE 'UTC')::time <> '00:00'`,
      };
    case "timestamp date":
      return { using: `${column}::date`, loss: "the time of day" };
    case "timestamp time":
      return { using: `${column}::time`, loss: "the date", lost: "true" };
  }
  return undefined;
}

function throughText(text: string, from: Type, to: Type, target: string): Conversion | undefined {
  if (to.isEnum && !from.isEnum && !texts.includes(from.base)) return undefined;
  if (!to.isEnum && !texts.includes(to.base)) return undefined;
  if (!to.isEnum) return { using: `${text}::${target}` };
  return { using: `${text}::${target}`, look: `fails on text that is not a valid ${to.base}` };
}

function toText(column: string, from: Type, to: Type, target: string): Conversion {
  const limit = to.base === "char" ? (to.args[0] ?? 1) : to.base === "varchar" ? to.args[0] : undefined;
  if (texts.includes(from.base)) return betweenTexts(column, from, to, target, limit);
  if (from.base === "bytea") {
    return { using: `convert_from(${column}, 'UTF8')`, look: "fails on bytes that are not valid UTF-8" };
  }
  // A truncated number would be wrong, so no cast is used, and PostgreSQL rejects values that are too long.
  return limit === undefined
    ? { using: `${column}::${target}` }
    : {
        using: `${column}::text${from.dimensions > 0 ? "[]" : ""}`,
        look: `fails on values longer than ${limit}`,
      };
}

/** Truncates values that are too long; char(n) also drops trailing blanks. Both only where that is allowed. */
function betweenTexts(
  column: string,
  from: Type,
  to: Type,
  target: string,
  limit: number | undefined,
): Conversion {
  const had = from.args[0] ?? (from.base === "char" ? 1 : Infinity);
  const isCut = limit !== undefined && had > limit;
  const losesBlanks = to.base === "char" && from.base !== "char";
  if (!isCut && !losesBlanks) return {};
  const losses = [
    ...(isCut ? [`values longer than ${limit} characters`] : []),
    ...(losesBlanks ? ["blanks at the end"] : []),
  ];
  return { using: `${column}::${target}`, loss: losses.join(", ") };
}

function fromText(column: string, to: Type, target: string, way: Way): Conversion {
  if (to.base === "bytea") return { using: `convert_to(${column}, 'UTF8')` };
  return {
    using: `${column}::text::${target}`,
    look: `fails on text that is not a valid ${to.base}`,
    // Texts that up wrote are in canonical form already.
    ...(way === "do" ? { loss: "the original spelling, as 007 becomes 7" } : {}),
  };
}

function betweenNumbers(from: Type, to: Type): Conversion {
  const outOfRange = { look: "fails on a number out of range" };
  const rounded = { loss: "digits, by rounding" };
  if (integers.includes(from.base)) {
    if (integers.includes(to.base)) {
      return integers.indexOf(to.base) < integers.indexOf(from.base) ? outOfRange : {};
    }
    if (to.base === "numeric") return to.args.length > 0 ? outOfRange : {};
    const isExact = from.base === "smallint" || (from.base === "integer" && to.base === "double precision");
    return isExact ? {} : rounded;
  }
  if (from.base === "real" && to.base === "double precision") return {};
  return { ...rounded, ...(floats.includes(to.base) && from.base !== "numeric" ? {} : outOfRange) };
}

/** What a time loses that gets fewer digits. */
function rounded(from: Type, to: Type): Conversion {
  return (to.args[0] ?? 6) < (from.args[0] ?? 6) ? { loss: "fractions of a second, by rounding" } : {};
}

function sameBase(from: Type, to: Type): Conversion {
  if (/^(timestamp|time|interval)/.test(to.base)) return rounded(from, to);
  if (to.base !== "numeric") return { look: "fails on a value that does not fit" };
  if (to.args.length === 0) return {};
  const [precision = 0, scale = 0] = to.args;
  const [hadPrecision = Infinity, hadScale = from.args.length > 0 ? 0 : Infinity] = from.args;
  return {
    ...(scale < hadScale ? { loss: "decimal places, by rounding" } : {}),
    ...(precision - scale < hadPrecision - hadScale || from.args.length === 0
      ? { look: "fails on a number out of range" }
      : {}),
  };
}
