import { type Static, t } from "elysia";
import type { Event } from "../../core/incident/event/list.ts";
import { earliestDays } from "../../core/incident/event/note.ts";
import { toApi } from "../../platform/names.ts";
import { descriptionLength, nameLength } from "../../platform/text.ts";
import {
  closed,
  cursorPattern,
  id,
  idText,
  incidentText,
  instant,
  listQuery,
  nullable,
  readOnly,
  version,
} from "../http/schema.ts";

/** The fields of a note, a report or a message that say what happened to its text. */
export const entryState = {
  version: { ...version, description: "Increases with each correction" },
  edited_at: nullable({ ...instant, description: "The last correction, withdrawal or redaction" }),
  edited_by: nullable(t.String({ description: "Who made it: a user name" })),
  withdrawn_at: nullable(instant),
  redacted_at: nullable(instant),
};

/** For reports and messages. */
export const entryOf = {
  event_id: nullable({
    ...id,
    description: "The event to correct or withdraw it by; null for what cannot be corrected",
  }),
  ...entryState,
};

const view = {
  id,
  at: instant,
  actor: t.String({ description: "A user name, `worker` or `system`" }),
  source: t.String({ description: "`core`, a scheduled task, the slug of a plugin" }),
  kind: t.String({ description: "What happened, for programs: `incident.stable`, `note`, ..." }),
  description: t.String({ description: "What happened, for people" }),
  data: t.Record(t.String(), t.Unknown(), { description: "Ids of the records that it is about" }),
  ...entryState,
};

export const eventView = t.Object(view, closed);

export const eventParams = t.Object({ incident_id: incidentText, event_id: idText }, closed);

const text = t.Optional(t.String({ maxLength: descriptionLength }));
const written = { version, description: text, conditions: text, actions: text, needs: text };

/** A note and a message have a description, and a report the three others. */
export const changedEvent = t.Object({ ...written, ...readOnly(view, written) }, closed);

export const withdrawnEvent = t.Object({ version }, closed);

export const redactedEvent = t.Object(
  {
    reason: t.String({
      minLength: 1,
      maxLength: nameLength,
      description: "Visible to everybody who may read the incident, and in the audit log",
    }),
  },
  closed,
);

export const redactionView = t.Object(
  {
    event: eventView,
    received_by: t.Array(t.String(), {
      description: "The slugs of the conversation plugins that were sent the text: remove it there as well",
    }),
    cited_by: t.Array(t.Object({ id, name: t.String() }, closed), {
      description:
        "The documents of the incident that may have its words: they link to the entry or, after an edit of the description or resolution, have the earlier text, also in an earlier version. Edit each so that it no longer has them, then redact its versions that had them",
    }),
    notice: t.String({ description: "What else still has the text: existing backups" }),
  },
  closed,
);

export const redactionNotice = "Backups that were made before still have the text";

export const revisionView = t.Object(
  {
    version: { ...version, description: "The version of the event that had this text" },
    author: t.String({ description: "The user name of the person who wrote it" }),
    at: instant,
    description: text,
    conditions: text,
    actions: text,
    needs: text,
  },
  closed,
);

export const revisionQuery = listQuery("`version` or `-version` (default)");

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

export function viewOf({ incidentId: _, data, ...event }: Event): Static<typeof eventView> {
  // The names in `data` are those that were recorded.
  return { ...toApi(event), data };
}
