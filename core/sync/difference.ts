/** A record as we keep it from a source. `gone`: the source has it no more. */
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

/** What has to be done for our records to be those of the list. */
export interface Difference<F> {
  /** New, said otherwise than before, or back. */
  written: Listed<F>[];
  /** Ids in the source that it lists no more. */
  vanished: string[];
  /** Records of the list about which there is nothing to do. */
  same: number;
}

/**
 * Holds what we keep of a source against its list, in which each id is once. Records of ids in `unread`, which the list
 * has but nobody can make sense of, stay what they are.
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
