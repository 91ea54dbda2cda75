import { InvalidInput } from "../../platform/errors.ts";

/** What a list can be sorted by. */
export type KeyKind = "text" | "id" | "rank" | "instant";
export type Key = string | number | Date | RankKey;
/** For a search: how well the record matches, and the ids of the newest and oldest ranked match. */
export type RankKey = [rank: number, newest: number, oldest: number];

/** The place of a record in a list. */
export interface Place<K = Key> {
  key: K;
  id: number;
}

const digestLength = 16;

/**
 * Returns the place as text that a caller hands back. It begins with a digest of the place and `binding` (list, sort,
 * search, filters), so that a damaged cursor or one from another list is refused. It is neither a secret nor a
 * permission: a forged cursor starts at another place in a list of what the caller may read anyway.
 */
export function writeCursor(binding: string, { key, id }: Place): string {
  const place = JSON.stringify([key, id]);
  return Buffer.concat([digest(binding, place), Buffer.from(place)]).toString("base64url");
}

/**
 * Reads a cursor. The result is safe for the database.
 * @throws InvalidInput for `cursor` if `writeCursor` cannot have written it for this `binding`
 */
export function readCursor(cursor: string, binding: string, kind: KeyKind): Place<string | number | RankKey> {
  const bytes = Buffer.from(cursor, "base64url");
  const place = bytes.subarray(digestLength).toString();
  // The same bytes have several spellings in Base64.
  const whole = bytes.toString("base64url") === cursor;
  if (!whole || !bytes.subarray(0, digestLength).equals(digest(binding, place))) throw foreign();
  const [key, id] = parsePair(place);
  const parsed = keyOf[kind](key);
  if (parsed === undefined || !isId(id)) throw foreign();
  return { key: parsed, id };
}

// Anyone who reads this file can forge the digest, and a place of the wrong type would be a 500.

function parsePair(place: string): unknown[] {
  try {
    const pair: unknown = JSON.parse(place);
    return Array.isArray(pair) ? pair : [];
  } catch {
    return [];
  }
}

const keyOf: Record<KeyKind, (key: unknown) => string | number | RankKey | undefined> = {
  text: (key) => (typeof key === "string" && !key.includes("\0") ? key : undefined),
  id: (key) => (isId(key) ? key : undefined),
  rank: (key) => {
    const [rank, newest, oldest, ...more] = Array.isArray(key) ? (key as unknown[]) : [];
    return isRank(rank) && isId(newest) && isId(oldest) && more.length === 0
      ? [rank, newest, oldest]
      : undefined;
  },
  instant: (key) => {
    const at = new Date(typeof key === "string" ? key : Number.NaN);
    if (Number.isNaN(at.getTime()) || at.toISOString() !== key) return undefined;
    // PostgreSQL has no year 0, and cannot read six-digit years.
    return /^(?!0000)\d{4}-/.test(key) ? key : undefined;
  },
};

/** ts_rank is between 0 and 1. PostgreSQL's real ends below 1e-37. */
function isRank(value: unknown): value is number {
  return typeof value === "number" && (value === 0 || (value > 1e-30 && value <= 1));
}

function isId(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

function digest(binding: string, place: string): Buffer {
  const hash = new Bun.CryptoHasher("sha256").update(JSON.stringify([binding, place])).digest();
  return Buffer.from(hash).subarray(0, digestLength);
}

function foreign(): InvalidInput {
  return new InvalidInput(
    "cursor",
    "This cursor is not valid for this list with these parameters: start without a cursor",
  );
}
