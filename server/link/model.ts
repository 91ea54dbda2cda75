import { t } from "elysia";
import { linkSides } from "../../core/incident/link/link.ts";
import { incidentLinkKinds, incidentStatuses } from "../../drizzle/schema/index.ts";
import { closed, id, idText, incidentText, instant, listQuery, oneOf } from "../http/schema.ts";

export const linkView = t.Object(
  {
    id,
    kind: oneOf(linkSides, { description: "What the other incident is to this one" }),
    incident: t.Object(
      { id, name: t.String(), title: t.String(), status: oneOf(incidentStatuses) },
      { ...closed, description: "The other incident" },
    ),
    created_at: instant,
  },
  closed,
);

export const linkParams = t.Object({ incident_id: incidentText, link_id: idText }, closed);

export const linkQuery = listQuery("`id` (default) or `-id`");

export const newLink = t.Object(
  {
    incident: incidentText,
    kind: oneOf(incidentLinkKinds, { description: "`duplicate`: this incident is a duplicate of the other" }),
  },
  closed,
);
