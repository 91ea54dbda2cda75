import { InvalidInput } from "../../platform/errors.ts";

/** What a list may go by. */
export type KeyKind = "text" | "id" | "rank" | "instant";
export type Key = string | number | Date | RankKey;
/** Of a search: how well the record matches, and the ids of the newest and the oldest match that are ranked. */
export type RankKey = [rank: number, newest: number, oldest: number];

/** The place of a record in a list. */
export interface Place<K = Key> {
  key: K;
  id: number;
}

const digestLength = 16;

/**
 * The place as text that a caller hands back. It begins with a digest over the place and `binding` (list, sort, search,
 * filters), so that a damaged cursor or one of another list is refused. It is no secret and no permission: who makes up
 * a good one begins at another place in a list that shows what they may see anyway.
 */
export function writeCursor(binding: string, { key, id }: Place): string {
  const place = JSON.stringify([key, id]);
  return Buffer.concat([digest(binding, place), Buffer.from(place)]).toString("base64url");
}

/**
 * @throws InvalidInput naming `cursor` for what `writeCursor` cannot have written for this `binding`; what comes back
 * is fit for the database
 */
export function readCursor(cursor: string, binding: string, kind: KeyKind): Place<string | number | RankKey> {
  const bytes = Buffer.from(cursor, "base64url");
  const place = bytes.subarray(digestLength).toString();
  // Base64 has several spellings of the same bytes.
  const whole = bytes.toString("base64url") === cursor;
  if (!whole || !bytes.subarray(0, digestLength).equals(digest(binding, place))) throw foreign();
  const [key, id] = JSON.parse(place) as unknown[];
  const parsed = keyOf[kind](key);
  if (parsed === undefined || !isId(id)) throw foreign();
  return { key: parsed, id };
}

/** The digest proves nothing against somebody who can read this file, and a key of the wrong kind would be a 500. */
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
    // PostgreSQL has no year 0, and does not read years of six digits.
    return /^(?!0000)\d{4}-/.test(key) ? key : undefined;
  },
};

/** ts_rank is between 0 and 1; below 1e-37 PostgreSQL's real ends. */
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
    "The cursor is not one of this list with these parameters: begin without it",
  );
}
