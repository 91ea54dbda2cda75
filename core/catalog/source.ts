import { Conflict } from "../errors.ts";

/** What a person may not change, since the next look at its source would change it back. */
export function comesFromSource(one: string, { source }: { source: string | null }): Conflict {
  return new Conflict(`This ${one} comes from ${source}: change it there`);
}
