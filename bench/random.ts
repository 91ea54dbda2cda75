/** Pseudo-random numbers that are the same for the same seed, on every machine. */
export interface Random {
  /** From `from` up to, but excluding, `to`. */
  between(from: number, to: number): number;
  chance(share: number): boolean;
  pick<T>(from: readonly T[]): T;
  /** At most `count` elements, in any order. */
  some<T>(from: readonly T[], count: number): T[];
}

/**
 * mulberry32, seeded with the FNV-1a hash of the seed, so that a part with a separate seed does not affect the others.
 */
export function randomOf(seed: string): Random {
  let state = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(seed)) state = Math.imul(state ^ byte, 0x01000193);
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const index = (length: number) => Math.floor(next() * length);
  return {
    between: (from, to) => from + next() * (to - from),
    chance: (share) => next() < share,
    pick(from) {
      if (from.length === 0) throw new RangeError("Nothing to pick from");
      return from[index(from.length)] as (typeof from)[number];
    },
    some(from, count) {
      const rest = [...from];
      const chosen: typeof rest = [];
      while (rest.length > 0 && chosen.length < count) chosen.push(...rest.splice(index(rest.length), 1));
      return chosen;
    },
  };
}
