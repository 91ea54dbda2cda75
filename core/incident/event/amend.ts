import { isDeepStrictEqual } from "node:util";
import { eq } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { event } from "../../../drizzle/schema/index.ts";
import { InvalidInput } from "../../../platform/errors.ts";
import type { Actor } from "../../context.ts";
import type { PluginContext } from "../../plugin/context.ts";
import { withdrawnText } from "../timeline/entry.ts";
import { recordEvent } from "../timeline/event.ts";
import {
  type Entry,
  entryNames,
  keepRevision,
  lockEntry,
  parseEntryText,
  readText,
  removeText,
  type WantedText,
  writeText,
} from "./entry.ts";
import { type EventIds, getEvent } from "./get.ts";
import type { Event } from "./list.ts";

/**
 * Replaces the text of a note, a message or a report. Its author and admins may do so; of an incident that was closed more
 * than a day ago, only admins. The timeline says so, and has the new text.
 *
 * @throws NotFound, InvalidInput, Forbidden and Conflict like `lockEntry`
 * @throws InvalidInput also for an empty or an unchanged text
 */
export async function amendEntry(
  context: PluginContext,
  actor: Actor,
  change: EventIds & { version: number; text: WantedText },
): Promise<Event> {
  const { db, clock } = context;
  return db.transaction(async (tx) => {
    const entry = await lockEntry(tx, clock, actor, change);
    const text = parseEntryText(entry.kind, change.text);
    const before = await readText(tx, entry);
    if (isDeepStrictEqual(text, before))
      throw new InvalidInput(Object.keys(text)[0]!, "The text is the same as before");
    await keepRevision(tx, entry, before);
    await writeText(tx, entry, text);
    await recordCorrection(tx, actor, entry, { at: clock.now(), kind: "corrected" });
    return getEvent({ db: tx }, actor, change);
  });
}

/**
 * Withdraws a note, a message or a report: nobody but admins can read its text any more. The same people may do so.
 *
 * @throws NotFound, InvalidInput, Forbidden and Conflict like `lockEntry`
 */
export async function withdrawEntry(
  context: PluginContext,
  actor: Actor,
  change: EventIds & { version: number },
): Promise<Event> {
  const { db, clock } = context;
  return db.transaction(async (tx) => {
    const entry = await lockEntry(tx, clock, actor, change);
    await keepRevision(tx, entry, await readText(tx, entry));
    await removeText(tx, entry, withdrawnText);
    const at = clock.now();
    await tx.update(event).set({ withdrawnAt: at }).where(eq(event.id, entry.id));
    await recordCorrection(tx, actor, entry, { at, kind: "withdrawn" });
    return getEvent({ db: tx }, actor, change);
  });
}

/** Sets the new version of an entry, and records on the timeline what happened to it. */
export async function recordCorrection(
  tx: Transaction,
  actor: Actor,
  entry: Pick<Entry, "id" | "incidentId" | "version"> & { kind: string },
  { at, kind }: { at: Date; kind: "corrected" | "withdrawn" },
): Promise<void> {
  await tx
    .update(event)
    .set({ version: entry.version + 1, editedAt: at, editedBy: actor.user })
    .where(eq(event.id, entry.id));
  const name = entryNames[entry.kind as Entry["kind"]];
  await recordEvent(tx, {
    incidentId: entry.incidentId,
    at,
    actor: actor.user,
    kind,
    // A list shows the entry's current text instead of this description of a correction.
    description: `${name[0]!.toUpperCase()}${name.slice(1)} ${kind}`,
    data: { target_id: entry.id, target_kind: entry.kind },
  });
}
