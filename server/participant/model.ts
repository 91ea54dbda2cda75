import { t } from "elysia";
import { shownRoles } from "../../core/incident/participant/participant.ts";
import { participantRoles } from "../../drizzle/schema/index.ts";
import { nameLength } from "../../platform/text.ts";
import { closed, id, idText, incidentText, instant, listQuery, nullable, oneOf } from "../http/schema.ts";

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

export const participantParams = t.Object({ incident_id: incidentText, participant_id: idText }, closed);

export const participantQuery = listQuery("`id` (default) or `-id`", {
  active: t.Optional(
    oneOf(["true", "false"] as const, { description: "Those who take part, or those who have left" }),
  ),
});

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
