import { type Static, t } from "elysia";
import type { Event } from "../../core/incident/event/list.ts";
import { earliestDays } from "../../core/incident/event/note.ts";
import { descriptionLength, nameLength } from "../../platform/text.ts";
import { closed, cursorPattern, id, instant, listQuery } from "../http/schema.ts";

export const eventView = t.Object(
  {
    id,
    at: instant,
    actor: t.String({ description: "A user name, `worker` or `system`" }),
    source: t.String({ description: "`core`, a scheduled task, the slug of a plugin" }),
    kind: t.String({ description: "What happened, for programs: `incident.stable`, `note`, ..." }),
    description: t.String({ description: "What happened, for people" }),
    data: t.Record(t.String(), t.Unknown(), { description: "Ids of the records that it is about" }),
  },
  closed,
);

export const eventQuery = listQuery(
  "`at`, `-at` (default), `id` or `-id`; with `after` by `id`. Ids are in the order of commits",
  {
    after: t.Optional(
      t.String({
        pattern: cursorPattern,
        description: "The id of an event, or `0`: only those added after it are listed",
      }),
    ),
    kind: t.Optional(t.String({ maxLength: nameLength })),
  },
);

export const newEvent = t.Object(
  {
    description: t.String({ minLength: 1, maxLength: descriptionLength }),
    at: t.Optional(
      t.String({
        maxLength: 40,
        description: `When it happened, if not now: not in the future, nor more than ${earliestDays} days before the report`,
      }),
    ),
  },
  closed,
);

export function viewOf({ incidentId: _, at, ...event }: Event): Static<typeof eventView> {
  return { ...event, at: at.toISOString() };
}
