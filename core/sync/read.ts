import { InvalidInput } from "../errors.ts";
import { shown } from "../plugin/mask.ts";
import type { Fault } from "../schedule/finish.ts";
import { nameLength, parseText } from "../text.ts";
import type { Listed } from "./difference.ts";

/** A list as far as sense can be made of it. */
export interface Reading<I, F> {
  records: (Listed<F> & { item: I })[];
  /** Ids of items of which none could be made. */
  unread: ReadonlySet<string>;
  faults: Fault[];
}

/**
 * Makes records of what a source lists. One bad item is its own fault; of several with one id, the first counts.
 * `parse` throws InvalidInput for an item that is none.
 */
export function readItems<I extends { externalId: string }, F>(
  source: string,
  items: readonly I[],
  parse: (item: I) => F,
): Reading<I, F> {
  const records = new Map<string, Listed<F> & { item: I }>();
  const unread = new Set<string>();
  const faults: Fault[] = [];
  for (const item of items) {
    const { externalId } = item;
    const fault = (reason: string) => faults.push({ item: `${source} ${shown(externalId)}`, reason });
    if (records.has(externalId) || unread.has(externalId)) {
      fault("It is listed twice");
      continue;
    }
    try {
      const fields = parse(item);
      records.set(parseText("id", externalId, nameLength), { externalId, fields, item });
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      unread.add(externalId);
      fault(error.detail);
    }
  }
  return { records: [...records.values()], unread, faults };
}
