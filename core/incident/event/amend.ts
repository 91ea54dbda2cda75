import { isDeepStrictEqual } from "node:util";
import { eq } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { type EntryText, event } from "../../../drizzle/schema/index.ts";
import { InvalidInput } from "../../../platform/errors.ts";
import type { Actor } from "../../context.ts";
import type { AppContext } from "../../plugin/context.ts";
import { announceCorrection } from "../message/correction.ts";
import { entryNames, withdrawnText } from "../timeline/entry.ts";
import { recordEvent } from "../timeline/event.ts";
import {
  type Entry,
  keepRevision,
  lockEntry,
  parseEntryText,
  readText,
  removeText,
  type WantedText,
  writeText,
  writtenAtOf,
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
  context: AppContext,
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
    await recordCorrection(tx, context, actor, entry, { at: clock.now(), action: "corrected", text });
    return getEvent({ db: tx }, actor, change);
  });
}

/**
 * Withdraws a note, a message or a report: nobody but admins can read its text any more. The same people may do so.
 *
 * @throws NotFound, InvalidInput, Forbidden and Conflict like `lockEntry`
 */
export async function withdrawEntry(
  context: AppContext,
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
    const text = { description: withdrawnText };
    await recordCorrection(tx, context, actor, entry, { at, action: "withdrawn", text });
    return getEvent({ db: tx }, actor, change);
  });
}

/**
 * Sets the new version of an entry, records on the timeline what happened to it, and corrects what was sent of it.
 *
 * @returns the plugins that already have the earlier text
 */
export async function recordCorrection(
  tx: Transaction,
  context: AppContext,
  actor: Actor,
  entry: Entry,
  change: { at: Date; action: "corrected" | "withdrawn" | "redacted"; text: EntryText; reason?: string },
): Promise<string[]> {
  const { id, incidentId, kind, data } = entry;
  const { at, action, text, reason } = change;
  const version = entry.version + 1;
  await tx.update(event).set({ version, editedAt: at, editedBy: actor.user }).where(eq(event.id, id));
  const name = entryNames[kind];
  await recordEvent(tx, {
    incidentId,
    at,
    actor: actor.user,
    kind: action,
    // A list shows the entry's current text instead of the description of a correction.
    description: `${name[0]!.toUpperCase()}${name.slice(1)} ${action}${reason ? `: ${reason}` : ""}`,
    data: { target_id: id, target_kind: kind, ...(reason && { reason }) },
  });
  return await announceCorrection(tx, context, {
    incident: entry.incident,
    kind,
    id: kind === "note" ? id : Number(data.report_id ?? data.message_id),
    version,
    author: entry.actor,
    by: actor.user,
    at: entry.at,
    writtenAt: writtenAtOf(entry),
    action,
    text,
  });
}
