import { and, eq, isNotNull, isNull, sql } from "drizzle-orm";
import { union } from "drizzle-orm/pg-core";
import {
  incident,
  individual,
  participant,
  participantGroup,
  participantGroupMember,
  team,
} from "../../../drizzle/schema/index.ts";
import type { Context } from "../../context.ts";
import { mayBeToldOf } from "../visibility/visibility.ts";

/** The plugin whose groups are stored here. */
export const mailingListSlug = "mailing-list";

/**
 * Returns the recipients of mail to an incident: its current participants, and the teams of its mailing list, as
 * `individual-17` and `team-3`. If several have the same address, only one of them is included.
 */
export async function recipientsOf({ db }: Context, incidentId: number): Promise<string[]> {
  const rows = recipientRows(db, incidentId);
  const found = await db
    .selectDistinctOn([rows.email], { recipient: rows.recipient })
    .from(rows)
    .orderBy(rows.email, rows.recipient);
  return found.map(({ recipient }) => recipient);
}

/** Returns the mail address of this recipient, or undefined if it is no longer one. */
export async function addressOf(
  { db }: Context,
  incidentId: number,
  recipient: string,
): Promise<string | undefined> {
  const rows = recipientRows(db, incidentId);
  const [row] = await db.select({ email: rows.email }).from(rows).where(eq(rows.recipient, recipient));
  return row?.email;
}

/** A team's address may reach non-participants, so Restricted content is not sent there. */
function recipientRows(db: Context["db"], incidentId: number) {
  return union(
    db
      .select({
        recipient: sql<string>`'individual-' || ${individual.id}`.as("recipient"),
        email: sql<string>`${individual.email}`.as("email"),
      })
      .from(participant)
      .innerJoin(individual, eq(individual.id, participant.individualId))
      .where(and(eq(participant.incidentId, incidentId), isNull(participant.leftAt))),
    db
      .select({
        recipient: sql<string>`'team-' || ${team.id}`.as("recipient"),
        email: sql<string>`${team.email}`.as("email"),
      })
      .from(participantGroupMember)
      .innerJoin(participantGroup, eq(participantGroup.id, participantGroupMember.participantGroupId))
      .innerJoin(incident, eq(incident.id, participantGroup.incidentId))
      .innerJoin(team, eq(team.id, participantGroupMember.teamId))
      .where(
        and(
          eq(participantGroup.incidentId, incidentId),
          eq(participantGroup.pluginSlug, mailingListSlug),
          eq(incident.visibility, "Open"),
          isNotNull(team.email),
        ),
      ),
  ).as("recipients");
}

/** Whether a message about an incident may go to this person. If it is Restricted, only to a participant. */
export async function mayBeTold({ db }: Context, incidentId: number, individualId: number): Promise<boolean> {
  return (await db.$count(incident, and(eq(incident.id, incidentId), mayBeToldOf(individualId)))) > 0;
}
