import { Elysia, t } from "elysia";
import { auditActions } from "../../core/audit.ts";
import { type AuditEntry, listAudit } from "../../core/audit_list.ts";
import { parseInstant } from "../../platform/instant.ts";
import { toApi } from "../../platform/names.ts";
import { nameLength } from "../../platform/text.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { refusals } from "../http/error.ts";
import { closed, id, instant, listQuery, listQueryOf, nullable, oneOf, pageOf } from "../http/schema.ts";

export const auditEntryView = t.Object(
  {
    id,
    at: instant,
    actor: t.String({ description: "A user; `client` before a sign-in; `system`" }),
    action: t.String(),
    address: nullable(t.String({ description: "The address of the client" })),
    subject: nullable(t.String({ description: "The id or the name of the object" })),
    data: t.Record(t.String(), t.Unknown()),
  },
  closed,
);

const exact = t.Optional(t.String({ minLength: 1, maxLength: nameLength }));
const auditQuery = listQuery("`at` or `-at` (default)", {
  actor: t.Optional(
    t.String({ minLength: 1, maxLength: nameLength, description: "A user; `client` or `system`" }),
  ),
  action: t.Optional(oneOf(auditActions)),
  subject: exact,
  since: t.Optional(t.String({ description: "An ISO 8601 time with an offset" })),
  until: t.Optional(t.String({ description: "Before this time" })),
});

export function viewOf({ data, ...entry }: AuditEntry) {
  // The names in `data` are those that were recorded.
  return { ...toApi(entry), data };
}

/** The audit log, for admins. */
export const auditRoutes = (deps: Deps) =>
  new Elysia({ name: "audit", prefix: "/audit" }).use(actorMacro(deps)).get(
    "/",
    async ({ actor: reader, query }) => {
      const { actor, action, subject, since, until } = query;
      const page = await listAudit(deps, reader, {
        ...listQueryOf(query),
        actor,
        action,
        subject,
        since: since === undefined ? undefined : parseInstant("since", since),
        until: until === undefined ? undefined : parseInstant("until", until),
      });
      return { ...page, items: page.items.map(viewOf) };
    },
    {
      actor: true,
      query: auditQuery,
      detail: { summary: "List the audit log" },
      response: { 200: pageOf(auditEntryView), ...refusals },
    },
  );
