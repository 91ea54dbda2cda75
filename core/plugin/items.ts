import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { masked } from "./mask.ts";
import { type UnreadableItem, unreadableItem } from "./methods.ts";

/** A valid item of a plugin's list without unknown properties, or why it is invalid. */
export type ReadItem<I> = { item: I } | { externalId: string | undefined; fault: string };

/** Checks one item of a plugin's list against the item's schema. */
export function readItem<S extends TSchema>(
  schema: S,
  item: unknown,
  secrets: readonly string[] = [],
): ReadItem<Static<S>> {
  if (Value.Check(schema, item)) return { item: Value.Clean(schema, item) as Static<S> };
  const { externalId } = Object(item) as { externalId?: unknown };
  const id = typeof externalId === "string" ? externalId : undefined;
  if (Value.Check(unreadableItem, item))
    return { externalId: id, fault: masked((item as UnreadableItem).unreadable, secrets) };
  const { path, message, value } = Value.Errors(schema, item).First()!;
  const field = path.slice(1).replaceAll("/", " ");
  const what =
    typeof value === "string" && value.includes("\0") ? "has a character that no text has (NUL)" : message;
  return { externalId: id, fault: masked(field === "" ? `Invalid item: ${what}` : `${field}: ${what}`) };
}
