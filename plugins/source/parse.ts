import { extname } from "node:path";
import { isRecord, type UnreadableItem } from "../../core/plugin.ts";
import { ConfigurationError, Unavailable } from "../../platform/errors.ts";
import { type CsvRecord, parseCsv, rowFault } from "./csv.ts";
import { type Content, type Location, nameOf } from "./read.ts";

export const formats = ["auto", "yaml", "json", "csv"] as const;
export type Format = (typeof formats)[number];

type Known = Exclude<Format, "auto">;

const byExtension: Record<string, Known> = {
  ".yaml": "yaml",
  ".yml": "yaml",
  ".json": "json",
  ".csv": "csv",
};

/**
 * Parses a text; YAML with several documents becomes a list.
 * @throws Unavailable if the text is not valid; the message never contains any of it
 */
export function parseContent(content: Content, location: Location, format: Format): unknown {
  const name = nameOf(location);
  if (content.mediaType === "text/html") {
    throw new Unavailable(`${name} answered with a web page (text/html), perhaps a sign-in page`);
  }
  const known = format === "auto" ? formatOf(content, location) : format;
  // An explicit empty list is required; otherwise, a truncated file would count as an empty list.
  if (content.text.trim() === "") throw new Unavailable(`${name} is empty`);
  if (known === "csv") {
    try {
      return parseCsv(content.text);
    } catch (error) {
      throw new Unavailable(`${name} is not CSV: ${(error as Error).message}`);
    }
  }
  try {
    return known === "json" ? JSON.parse(content.text) : Bun.YAML.parse(content.text);
  } catch (error) {
    // Its message may quote the text.
    throw new Unavailable(`${name} is not ${known.toUpperCase()}`, { cause: error });
  }
}

function formatOf({ mediaType = "" }: Content, location: Location): Known {
  const path = "url" in location ? location.url.pathname : location.path;
  const known = byExtension[extname(path).toLowerCase()];
  if (known) return known;
  if (/^(application|text)\/(.+\+)?json$/.test(mediaType)) return "json";
  if (/^(application|text)\/(.+\+|x-)?yaml$/.test(mediaType)) return "yaml";
  if (mediaType === "text/csv") return "csv";
  throw new ConfigurationError([
    `${nameOf(location)}: unknown format: set it, because neither the name nor the media type shows it`,
  ]);
}

/** A list, or the list under one of these keys. */
export function listIn(value: unknown, keys: readonly string[], location: Location): unknown[] {
  if (Array.isArray(value)) return value;
  for (const key of keys) {
    const inner = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
    if (Array.isArray(inner)) return inner;
  }
  throw new Unavailable(
    `${nameOf(location)} contains no list, neither at the top level nor as ${keys.join(" or ")}`,
  );
}

/** One record of a list. @throws Unavailable, which names it, if it is not a record */
export function recordIn(value: unknown, where: string): Record<string, unknown> {
  if (!isRecord(value)) throw new Unavailable(`${where}: it is not an object`);
  const { [rowFault]: fault } = value as CsvRecord;
  if (fault !== undefined) throw new Unavailable(`${where}: ${fault}`);
  return value;
}

/** The result of `read`, or the error of a record that cannot be read, which does not affect the others. */
export function orUnreadable<T>(read: () => T, idOf: () => string | undefined): T | UnreadableItem {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    let externalId: string | undefined;
    try {
      externalId = idOf();
    } catch {
      // The id cannot be read, either.
    }
    return { ...(externalId !== undefined && { externalId }), unreadable: error.detail };
  }
}

/** The trimmed text under a key, or undefined. */
export function textIn(record: Record<string, unknown>, key: string, where: string): string | undefined {
  const value = Object.hasOwn(record, key) ? record[key] : undefined;
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw new Unavailable(`${where}: ${key} is not a text: put it in quotes`);
  return value.trim() || undefined;
}

/** As text; integers are also accepted. */
export function idIn(record: Record<string, unknown>, where: string): string | undefined {
  const { id } = record;
  return Number.isSafeInteger(id) ? String(id) : textIn(record, "id", where);
}

/** http and https only: it is shown as a link. */
export function linkIn(record: Record<string, unknown>, key: string, where: string): string | undefined {
  const text = textIn(record, key, where);
  if (text === undefined || /^https?:\/\/\S+$/.test(text)) return text;
  throw new Unavailable(`${where}: ${key} is not an http(s) address`);
}
