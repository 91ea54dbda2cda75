import type { TSchema } from "@sinclair/typebox";
import { InvalidInput } from "../../platform/errors.ts";
import { nameLength, parseText } from "../../platform/text.ts";
import { readItem } from "../plugin/items.ts";
import { masked } from "../plugin/mask.ts";
import type { Fault } from "../schedule/runs.ts";
import type { Listed } from "./difference.ts";

/** The readable part of a list. */
export interface Reading<I, F> {
  records: (Listed<F> & { item: I })[];
  /** The ids of unreadable items. */
  unread: ReadonlySet<string>;
  /** Whether the id of every item is known: otherwise records that seem to be missing may be listed. */
  complete: boolean;
  faults: Fault[];
}

/** How to turn items into records. */
export interface ItemReader<I, F> {
  /** The schema of an item. */
  schema: TSchema;
  /** @throws InvalidInput */
  parse(item: I): F;
}

/**
 * Reads the records in a source's list. An invalid item affects only itself. If several have one id, the first counts.
 */
export function readItems<I extends { externalId: string }, F>(
  { slug, secrets = [] }: { slug: string; secrets?: readonly string[] },
  items: readonly unknown[],
  { schema, parse }: ItemReader<I, F>,
): Reading<I, F> {
  const records = new Map<string, Listed<F> & { item: I }>();
  const unread = new Set<string>();
  const faults: Fault[] = [];
  let complete = true;
  for (const [at, listed] of items.entries()) {
    const read = readItem(schema, listed, secrets);
    const externalId = "item" in read ? (read.item as I).externalId : read.externalId;
    const name = externalId === undefined ? `item ${at + 1} of its list` : masked(externalId);
    const fault = (reason: string) => faults.push({ item: `${slug} ${name}`, reason });
    if (externalId === undefined) complete = false;
    else if (records.has(externalId) || unread.has(externalId)) {
      fault("fault" in read ? read.fault : "It is listed twice");
      continue;
    }
    if ("fault" in read) {
      if (externalId !== undefined) unread.add(externalId);
      fault(read.fault);
      continue;
    }
    const item = read.item as I;
    try {
      const fields = parse(item);
      const id = parseText("id", item.externalId, nameLength);
      records.set(id, { externalId: id, fields, item });
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      unread.add(item.externalId);
      fault(error.detail);
    }
  }
  return { records: [...records.values()], unread, complete, faults };
}
