import { and, eq, isNull } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import {
  conversationMessage,
  type EntryText,
  event,
  eventRevision,
  incident,
  statusReport,
} from "../../../drizzle/schema/index.ts";
import { after, type Clock } from "../../../platform/clock.ts";
import { Changed, Conflict, Forbidden, InvalidInput } from "../../../platform/errors.ts";
import { descriptionLength, parseProse, parseText } from "../../../platform/text.ts";
import type { Actor } from "../../context.ts";
import { lockIncident } from "../incident/lock.ts";
import { type EntryKind, entryKinds, entryNames } from "../timeline/entry.ts";
import { type EventIds, noSuchEntry } from "./get.ts";

/** How long after the closing authors may still correct and withdraw what they wrote. */
const authorsSeconds = 24 * 3600;

type Locked = Awaited<ReturnType<typeof lockIncident>>;
type EventRow = typeof event.$inferSelect;
export type Entry = EventRow & { kind: EntryKind; incident: Locked };

export const isEntry = (row: EventRow & { incident: Locked }): row is Entry =>
  (entryKinds as readonly string[]).includes(row.kind);

/** Locks the incident, and reads the event. @throws NotFound also for an event of another incident */
export async function lockEvent(
  tx: Transaction,
  actor: Actor,
  { incidentId, eventId }: EventIds,
): Promise<EventRow & { incident: Locked }> {
  const locked = await lockIncident(tx, actor, incidentId);
  const [found] = await tx
    .select()
    .from(event)
    .where(and(eq(event.id, eventId), eq(event.incidentId, incidentId)));
  if (!found) throw noSuchEntry(eventId);
  return { ...found, incident: locked };
}

/**
 * Locks an entry that the actor may correct or withdraw, at this version.
 *
 * @throws NotFound also for an event of another incident
 * @throws InvalidInput for an event that has no person's text
 * @throws Forbidden for somebody else's entry, and a day after the incident was closed, unless the actor is an admin
 * @throws Conflict when it is no longer at this version, or has been withdrawn or redacted
 */
export async function lockEntry(
  tx: Transaction,
  clock: Clock,
  actor: Actor,
  wanted: EventIds & { version: number },
): Promise<Entry> {
  const found = await lockEvent(tx, actor, wanted);
  if (!isEntry(found))
    throw new InvalidInput("event_id", "This event is not a note, a message or a status report of a person");
  if (!actor.admin) {
    if (found.actor !== actor.user)
      throw new Forbidden(
        `Only its author and admins can correct or withdraw this ${entryNames[found.kind]}`,
      );
    await refuseLongClosed(tx, clock, found.incident);
  }
  if (found.redactedAt) throw new Conflict(`This ${entryNames[found.kind]} was redacted`);
  if (found.withdrawnAt) throw new Conflict(`This ${entryNames[found.kind]} was withdrawn`);
  if (found.version !== wanted.version) throw new Changed("entry", found.version);
  return found;
}

/** @throws Forbidden */
async function refuseLongClosed(tx: Transaction, clock: Clock, { id, status }: Locked): Promise<void> {
  if (status !== "Closed") return;
  const [found] = await tx.select({ closedAt: incident.closedAt }).from(incident).where(eq(incident.id, id));
  const closedAt = found?.closedAt;
  if (closedAt && after(closedAt, authorsSeconds) <= clock.now())
    throw new Forbidden("The incident was closed more than a day ago: only admins can change its entries");
}

/** A correction as it was sent: the fields of either form. */
export type WantedText = Partial<Record<"description" | "conditions" | "actions" | "needs", string>>;

/** @throws InvalidInput for the fields of another kind, and for an empty text */
export function parseEntryText(kind: EntryKind, wanted: WantedText): EntryText {
  const { description, conditions, actions, needs } = wanted;
  if (kind !== "report.written") {
    for (const field of ["conditions", "actions", "needs"] as const)
      if (wanted[field] !== undefined)
        throw new InvalidInput(field, `A ${entryNames[kind]} has a description instead`);
    return { description: parseProse("description", description ?? "") };
  }
  if (description !== undefined)
    throw new InvalidInput("description", "A status report has conditions, actions and needs instead");
  return {
    conditions: parseProse("conditions", conditions ?? ""),
    actions: parseText("actions", given("actions", actions), descriptionLength),
    needs: parseText("needs", given("needs", needs), descriptionLength),
  };
}

/** A PUT replaces the text, so a field that is left out would be lost. @throws InvalidInput */
function given(field: string, text: string | undefined): string {
  if (text === undefined) throw new InvalidInput(field, `The field ${field} is missing`);
  return text;
}

export async function readText(tx: Transaction, { kind, description, data }: Entry): Promise<EntryText> {
  if (kind === "note") return { description };
  if (kind === "report.written") {
    const { conditions, actions, needs } = statusReport;
    const [report] = await tx
      .select({ conditions, actions, needs })
      .from(statusReport)
      .where(eq(statusReport.id, Number(data.report_id)));
    return report ?? { conditions: "", actions: "", needs: "" };
  }
  const [message] = await tx
    .select({ description: conversationMessage.text })
    .from(conversationMessage)
    .where(toEverybody(data));
  return message ?? { description: "" };
}

const toEverybody = (data: EventRow["data"]) =>
  and(eq(conversationMessage.id, Number(data.message_id)), isNull(conversationMessage.recipientId));

/** Replaces a text where it is stored. */
export async function writeText(
  tx: Transaction,
  { id, kind, data }: Pick<Entry, "id" | "kind" | "data">,
  text: EntryText,
): Promise<void> {
  if ("conditions" in text)
    await tx
      .update(statusReport)
      .set(text)
      .where(eq(statusReport.id, Number(data.report_id)));
  else if (kind === "message.sent")
    await tx.update(conversationMessage).set({ text: text.description }).where(toEverybody(data));
  else await tx.update(event).set(text).where(eq(event.id, id));
}

/** Removes a text where it is stored. A report has empty fields then, and the others this word that says so. */
export async function removeText(tx: Transaction, entry: Entry, word: string): Promise<void> {
  const empty = { conditions: "", actions: "", needs: "" };
  await writeText(tx, entry, entry.kind === "report.written" ? empty : { description: word });
  // The timeline no longer shows the text of a report or a message, but this.
  await tx.update(event).set({ description: word }).where(eq(event.id, entry.id));
}

/** Keeps the text that is about to be replaced, for admins. */
export async function keepRevision(tx: Transaction, entry: Entry, text: EntryText): Promise<void> {
  const { id: eventId, version, actor, editedBy, editedAt } = entry;
  await tx
    .insert(eventRevision)
    .values({ eventId, version, text, author: editedBy ?? actor, at: editedAt ?? writtenAtOf(entry) });
}

/** A backdated note was written later than it says. */
export function writtenAtOf({ at, data }: Entry): Date {
  return typeof data.noted_at === "string" ? new Date(data.noted_at) : at;
}
