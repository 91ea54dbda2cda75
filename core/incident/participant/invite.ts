import { and, eq } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { individual } from "../../../drizzle/schema/index.ts";
import { Conflict, InvalidInput } from "../../../platform/errors.ts";
import { parseUserName } from "../../auth/user/field.ts";
import { makeAsNew } from "../../catalog/person/as_new.ts";
import { individualOf } from "../../catalog/person/of_actor.ts";
import type { Actor } from "../../context.ts";
import type { AppContext } from "../../plugin/context.ts";
import { planJoined } from "../flow/plan.ts";
import { mayKnow } from "../visibility/visibility.ts";
import { changeParticipant } from "./change.ts";
import { join } from "./join.ts";
import type { Participant, ParticipantRole } from "./participant.ts";

export interface Invitation {
  incidentId: number;
  /** Either this or `email`. */
  individualId?: number;
  /** An unknown address becomes an individual. */
  email?: string;
  roles: readonly ParticipantRole[];
}

/**
 * Makes somebody participate in an incident, or gives a participant more roles. Anyone who may read it may do so.
 *
 * @throws InvalidInput
 * @throws NotFound when the actor may not read the incident
 * @throws Conflict when they already participate with all these roles
 */
export async function inviteParticipant(
  context: AppContext,
  actor: Actor,
  { incidentId, individualId, email, roles }: Invitation,
): Promise<Participant> {
  const find = finderOf(context, actor, individualId, email);
  return changeParticipant(context, actor, incidentId, async (tx, change) => {
    const { at } = change;
    const invited = await find(tx, at);
    const { participantId, joined, assumed } = await join(tx, { individualId: invited, roles, ...change });
    if (!joined && assumed.length === 0)
      throw new Conflict("This person already participates with these roles");
    if (joined) await planJoined(tx, { incidentId, plugins: context.plugins, at });
    return participantId;
  });
}

/** Returns how to find the invited person. @throws InvalidInput */
function finderOf({ config }: AppContext, actor: Actor, id: number | undefined, email: string | undefined) {
  if (id !== undefined && email === undefined) return (tx: Transaction) => known(tx, actor, id);
  if (id !== undefined || email === undefined)
    throw new InvalidInput("individual_id", "Name the person by either individual_id or email");
  const user = parseUserName("email", email, config.domain);
  return async (tx: Transaction, at: Date) => {
    const id = await individualOf(tx, { user }, at);
    // A person whom the actor may not know of is handled as if they were new.
    await makeAsNew(tx, actor, [id], at);
    return id;
  };
}

async function known(tx: Transaction, actor: Actor, id: number): Promise<number> {
  const [found] = await tx
    .select({ id: individual.id })
    .from(individual)
    .where(and(eq(individual.id, id), mayKnow(actor)))
    // So that it is not deleted before we are done.
    .for("key share");
  if (!found) throw new InvalidInput("individual_id", "There is no such individual");
  return found.id;
}
