/** A record from a source as stored. `gone`: the source no longer has it. */
export interface Kept<F> {
  externalId: string;
  gone: boolean;
  fields: F;
}

/** A record as its source lists it. */
export interface Listed<F> {
  externalId: string;
  fields: F;
}

/** The changes that make our records match the list. */
export interface Difference<F> {
  /** New, changed or back again. */
  written: Listed<F>[];
  /** Ids in the source that it no longer lists. */
  vanished: string[];
  /** The number of listed records that are unchanged. */
  same: number;
}

/**
 * Compares our records of a source with its list, in which ids are unique. Records with ids in `unread`, which are
 * listed but unreadable, stay unchanged.
 */
export function differenceOf<F extends object>(
  kept: readonly Kept<F>[],
  listed: readonly Listed<F>[],
  unread: ReadonlySet<string> = new Set(),
): Difference<F> {
  const known = new Map(kept.map((record) => [record.externalId, record]));
  const present = new Set(unread);
  const written: Listed<F>[] = [];
  for (const record of listed) {
    present.add(record.externalId);
    const before = known.get(record.externalId);
    if (!before || before.gone || !sameFields(before.fields, record.fields)) written.push(record);
  }
  const vanished = kept
    .filter(({ externalId, gone }) => !gone && !present.has(externalId))
    .map(({ externalId }) => externalId);
  return { written, vanished, same: listed.length - written.length };
}

function sameFields<F extends object>(one: F, other: F): boolean {
  return (Object.keys(other) as (keyof F)[]).every((name) => one[name] === other[name]);
}
