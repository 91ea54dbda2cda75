import { and, eq, isNull, or } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { document } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { InvalidInput } from "../../../platform/errors.ts";
import type { Actor, Context } from "../../context.ts";
import { lockNamedIncident } from "../incident/lock.ts";
import { getTask } from "./get.ts";
import { refuseUnknown } from "./people.ts";
import { parseTask, type Task, type TaskFields } from "./task.ts";
import { insertTask } from "./write.ts";

export interface NewTask extends TaskFields {
  incidentId: number;
  /** The document that contains it. */
  documentId: number | null;
  /** By default in a day, or in a week if it comes from a review. */
  resolveBy?: Date;
}

const day = 24 * 3600;

/** The default due time of a task: a review's tasks are less urgent than an incident's. */
export function defaultResolveBy(at: Date, resourceType: string | undefined): Date {
  return after(at, resourceType === "review" ? 7 * day : day);
}

/**
 * Creates a task of an incident, and records it on the timeline. Its creator is the actor.
 *
 * @throws InvalidInput also for an incident or a document that does not exist or that the actor may not read
 */
export async function createTask(context: Context, actor: Actor, wanted: NewTask): Promise<Task> {
  const { db, clock, config } = context;
  const { incidentId, documentId } = wanted;
  const fields = parseTask(wanted, config.domain);
  return db.transaction(async (tx) => {
    await lockNamedIncident(tx, actor, incidentId);
    const at = clock.now();
    await refuseUnknown(tx, actor, fields);
    const resourceType = documentId === null ? undefined : await typeOf(tx, documentId, incidentId);
    const resolveBy = wanted.resolveBy ?? defaultResolveBy(at, resourceType);
    const made = { incidentId, documentId, externalId: null, creator: actor.user, status: "Open" as const };
    const id = await insertTask(tx, { ...fields, ...made, resolveBy }, { at, actor: actor.user });
    return getTask({ db: tx }, actor, id);
  });
}

/** Anyone who may read the incident may read its documents, and those without an incident. */
async function typeOf(tx: Transaction, documentId: number, incidentId: number): Promise<string> {
  const [found] = await tx
    .select({ resourceType: document.resourceType })
    .from(document)
    .where(
      and(eq(document.id, documentId), or(isNull(document.incidentId), eq(document.incidentId, incidentId))),
    )
    // So that it is not deleted before we are done.
    .for("key share");
  if (!found) throw new InvalidInput("document_id", "The incident has no such document");
  return found.resourceType;
}
