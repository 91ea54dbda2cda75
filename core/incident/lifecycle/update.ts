import { and, desc, eq, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { event, incident } from "../../../drizzle/schema/index.ts";
import { minuteText } from "../../../platform/duration.ts";
import { Changed, Conflict, InvalidInput } from "../../../platform/errors.ts";

import { descriptionLength, parseText } from "../../../platform/text.ts";
import type { Actor } from "../../context.ts";
import type { AppContext } from "../../plugin/context.ts";
import { planClosed, planReopened, planRestricted } from "../flow/plan.ts";
import {
  findIncident,
  type Incident,
  type IncidentText,
  lockKind,
  parseIncident,
  type Visibility,
} from "../incident/incident.ts";
import { lockIncident } from "../incident/lock.ts";
import { type IncidentStatus, type Transition, transition } from "../incident/transition.ts";
import { announceChange } from "../message/announce.ts";
import { type EventKind, recordEvent } from "../timeline/event.ts";

/** What a PUT replaces. */
export interface IncidentFields extends IncidentText {
  status: IncidentStatus;
  visibility: Visibility;
  incidentTypeId: number;
  incidentPriorityId: number;
  resolution: string | null;
  /** When the harm began and ended; undefined keeps the time. */
  impactStartedAt?: Date | null;
  impactEndedAt?: Date | null;
}

/**
 * Replaces the fields of an incident. A changed status is a transition. Anyone who may read it may change it, but not
 * so that they can no longer read it.
 *
 * @returns the incident, and whether steps follow from its new status or visibility, which `runFlow` runs
 * @throws InvalidInput also for a type or priority that does not exist, and for an impact in the future or that ends
 *   before it starts
 * @throws NotFound also when the actor may not read it
 * @throws Conflict when it is no longer at `version`, or the transition is not allowed
 */
export async function updateIncident(
  context: AppContext,
  actor: Actor,
  change: IncidentFields & { id: number; version: number },
): Promise<{ incident: Incident; follows: boolean }> {
  const { db, clock, plugins } = context;
  const { id, version, status, visibility, incidentTypeId, incidentPriorityId } = change;
  const resolution =
    change.resolution === null ? null : parseText("resolution", change.resolution, descriptionLength);
  const fields = { ...parseIncident(change), visibility, incidentTypeId, incidentPriorityId, resolution };
  return db.transaction(async (tx) => {
    await lockIncident(tx, actor, id);
    const at = clock.now();
    const before = (await findIncident(tx, actor, id))!;
    if (before.version !== version) throw new Changed("incident", before.version);
    await lockKind(tx, fields);
    const impact = parseImpact(change, before, at);
    const closesActive = before.status === "Active" && status === "Closed";
    const stableAt = closesActive ? await stableBefore(tx, id) : before.stableAt;
    const step = transition(before.status, status, at, { stableAt });
    await tx
      .update(incident)
      .set({ ...fields, ...impact, ...changesOf(step), version: version + 1, updatedAt: at })
      .where(eq(incident.id, id));
    const after = await findIncident(tx, actor, id);
    // Those who may read a Restricted incident take part in it, or are admins.
    if (!after) throw takePartFirst();
    await recordFieldChanges(tx, actor, before, after);
    for (const kind of step?.kinds ?? []) await recordStatusChange(tx, actor, before, { at, kind });
    const planned = { incidentId: id, at, plugins };
    if (step?.status === "Closed") await planClosed(tx, planned);
    const again = step?.status === "Active" ? await planReopened(tx, planned) : undefined;
    const becomesRestricted = before.visibility === "Open" && after.visibility === "Restricted";
    const restricts = becomesRestricted && (await planRestricted(tx, planned));
    // These announce it once they are open again.
    await announceChange(tx, context, { before, after, user: actor.user, except: again?.reopening ?? [] });
    return { incident: after, follows: step?.status === "Closed" || again?.follows || restricts };
  });
}

function takePartFirst(): Conflict {
  return new Conflict("Take part in this incident before you make it Restricted");
}

function changesOf(step: Transition | undefined) {
  if (!step) return {};
  const { status, stableAt, closedAt } = step;
  return { status, stableAt, closedAt, costBasis: sql`${incident.costBasis} + 1` };
}

/** @throws InvalidInput for a new time in the future, or an end before the start */
function parseImpact(
  change: Pick<IncidentFields, "impactStartedAt" | "impactEndedAt">,
  before: Incident,
  now: Date,
) {
  const { impactStartedAt = before.impactStartedAt, impactEndedAt = before.impactEndedAt } = change;
  const impact = { impactStartedAt, impactEndedAt };
  for (const [field, word] of [
    ["impactStartedAt", "start"],
    ["impactEndedAt", "end"],
  ] as const) {
    const at = impact[field];
    if (isSame(at, before[field])) continue;
    if (at && at > now)
      throw new InvalidInput(names[field], `The ${word} of the impact must not be in the future`);
    if (impactStartedAt && impactEndedAt && impactEndedAt < impactStartedAt)
      throw new InvalidInput(names[field], "The impact must not end before it starts");
  }
  return impact;
}

/** Since when an Active incident was Stable before it was reopened, if it was Closed; null if it was not. */
async function stableBefore(tx: Transaction, incidentId: number): Promise<Date | null> {
  const [last] = await tx
    .select({ data: event.data })
    .from(event)
    .where(and(eq(event.incidentId, incidentId), eq(event.kind, "incident.reopened")))
    .orderBy(desc(event.id))
    .limit(1);
  const { stable_at, closed_at } = last?.data ?? {};
  return typeof stable_at === "string" && closed_at ? new Date(stable_at) : null;
}

/** The API's names of the fields. */
const names = {
  title: "title",
  description: "description",
  resolution: "resolution",
  visibility: "visibility",
  incidentTypeId: "incident_type_id",
  incidentPriorityId: "incident_priority_id",
  impactStartedAt: "impact_started_at",
  impactEndedAt: "impact_ended_at",
} as const;
type Field = keyof typeof names;

/** For these fields, the timeline names both values. For a text, it only says that it changed. */
const fieldsWithValues: Partial<Record<Field, { name: string; valueOf: (incident: Incident) => string }>> = {
  visibility: { name: "visibility", valueOf: (one) => one.visibility },
  incidentTypeId: { name: "type", valueOf: (one) => one.incidentType.name },
  incidentPriorityId: { name: "priority", valueOf: (one) => one.incidentPriority.name },
  impactStartedAt: { name: "start of the impact", valueOf: (one) => timeText(one.impactStartedAt) },
  impactEndedAt: { name: "end of the impact", valueOf: (one) => timeText(one.impactEndedAt) },
};

const timeText = (at: Date | null) => (at ? minuteText(at, "UTC") : "none");

const isSame = (a: unknown, b: unknown) => (a instanceof Date && b instanceof Date ? +a === +b : a === b);

/** The earlier texts of these are in the data of their event, which is read like the incident. */
const longTexts: readonly Field[] = ["description", "resolution"];

async function recordFieldChanges(tx: Transaction, actor: Actor, before: Incident, after: Incident) {
  const fields = (Object.keys(names) as Field[]).filter((field) => !isSame(before[field], after[field]));
  if (fields.length === 0) return;
  const changed = fields.map((field) => names[field]);
  const descriptions = fields.map((field) => {
    const shown = fieldsWithValues[field];
    return shown ? `${shown.name} from ${shown.valueOf(before)} to ${shown.valueOf(after)}` : names[field];
  });
  const values = fields
    .filter((field) => field in fieldsWithValues)
    .map((field) => [names[field], { from: before[field], to: after[field] }]);
  const texts = fields
    .filter((field) => longTexts.includes(field))
    .map((field) => [names[field], { from: before[field] }]);
  await recordEvent(tx, {
    incidentId: after.id,
    at: after.updatedAt,
    actor: actor.user,
    kind: "incident.updated",
    description: `Changed: ${descriptions.join(", ")}`,
    data: { changed, ...Object.fromEntries([...values, ...texts]) },
  });
}

const words: Partial<Record<EventKind, string>> = {
  "incident.stable": "is stable",
  "incident.closed": "is closed",
  "incident.reopened": "was reopened",
};

async function recordStatusChange(
  tx: Transaction,
  actor: Actor,
  { id: incidentId, name, stableAt, closedAt }: Incident,
  { at, kind }: { at: Date; kind: EventKind },
) {
  const description = `${name} ${words[kind]}`;
  // The row loses the earlier times of Stable and Closed, so the timeline keeps them.
  const data = kind === "incident.reopened" ? { stable_at: stableAt, closed_at: closedAt } : {};
  await recordEvent(tx, { incidentId, at, actor: actor.user, kind, description, data });
}
