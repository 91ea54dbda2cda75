import { type Static, t } from "elysia";
import { type Participant, shownRoles } from "../../core/incident/participant/participant.ts";
import { participantRoles } from "../../drizzle/schema/index.ts";
import { nameLength } from "../../platform/text.ts";
import {
  closed,
  id,
  idText,
  incidentText,
  instant,
  listQuery,
  nullable,
  oneOf,
  pageOf,
} from "../http/schema.ts";

/** An individual, wherever they have a part in something. */
export const personView = t.Object({ id, name: t.String(), email: t.String() }, closed);

const role = oneOf(participantRoles);

export const participantView = t.Object(
  {
    id,
    individual: personView,
    joined_at: instant,
    left_at: nullable(instant),
    roles: t.Array(t.Object({ id, role, assumed_at: instant, renounced_at: nullable(instant) }, closed), {
      maxItems: shownRoles,
      description: "The current roles, then the latest former ones; the timeline has all of them",
    }),
  },
  closed,
);

export const participantPage = pageOf(participantView);

export const participantParams = t.Object({ incident_id: incidentText, participant_id: idText }, closed);

const { limit, cursor } = listQuery;

export const participantQuery = t.Object(
  {
    limit,
    cursor,
    sort: t.Optional(t.String({ description: "`id` (default) or `-id`" })),
    active: t.Optional(
      oneOf(["true", "false"] as const, { description: "Those who take part, or those who have left" }),
    ),
  },
  closed,
);

export const newParticipant = t.Object(
  {
    individual_id: t.Optional(id),
    email: t.Optional(
      t.String({ minLength: 1, maxLength: nameLength, description: "Instead of `individual_id`" }),
    ),
    roles: t.Optional(
      t.Array(role, {
        maxItems: participantRoles.length,
        description: "`participant` unless given",
      }),
    ),
  },
  closed,
);

export const newRole = t.Object(
  {
    role,
    replaces: t.Optional({
      ...id,
      description: "The current commander as far as you know: refused if it is another participant",
    }),
  },
  closed,
);

export const endedRole = t.Object({ role }, closed);

export function viewOf({
  id,
  individual,
  joinedAt,
  leftAt,
  roles,
}: Participant): Static<typeof participantView> {
  return {
    id,
    individual,
    joined_at: joinedAt.toISOString(),
    left_at: leftAt?.toISOString() ?? null,
    roles: roles.map(({ id, role, assumedAt, renouncedAt }) => ({
      id,
      role,
      assumed_at: assumedAt.toISOString(),
      renounced_at: renouncedAt?.toISOString() ?? null,
    })),
  };
}
