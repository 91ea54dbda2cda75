import type { Prepare } from "./permission_catalog.ts";
import type { Place, World } from "./permission_world.ts";

/** What somebody opens, or sends with a form. */
export interface Use {
  path: string;
  /** Of a form. */
  fields?: Record<string, string>;
  /** For lists: a part of the page that shows the record. */
  shows?: string;
  /** A form that may be done without changing a row of the incident. */
  isQuiet?: boolean;
}

export const addressOf = ({ incidentId }: Place) => `/app/incidents/${incidentId}`;
const linkTo = (place: Place) => `href="${addressOf(place)}`;
const onPage =
  (query = "", shows?: (place: Place) => string) =>
  (place: Place): Use => ({ path: `${addressOf(place)}${query}`, shows: shows?.(place) });
const form =
  (action: string, fields: (place: Place, world: World) => Record<string, string | number>) =>
  (place: Place, world: World): Use => ({
    path: `${addressOf(place)}/${action}`,
    fields: texts(fields(place, world)),
  });
export const texts = (fields: Record<string, string | number>): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));
const found =
  (shows: (place: Place) => string) =>
  (place: Place): Use => ({ path: `/app/search?q=${place.word}`, shows: shows(place) });
const word = (place: Place) => place.word;
const whole = ({ visibility }: Place, { typeId, priorityId }: World) => ({
  title: "Changed",
  description: "",
  type: typeId,
  priority: priorityId,
  visibility,
  version: 1,
});
const document =
  (rest = "", fields?: Record<string, string>) =>
  ({ documentId }: Place): Use => ({ path: `/app/documents/${documentId}${rest}`, fields });

/** The pages of the first table, by its rows. */
export const pagesOfAnIncident: Readonly<Record<string, (place: Place, world: World) => Use>> = {
  "GET /incidents/": (place) => ({ path: "/app?show=all", shows: linkTo(place) }),
  "GET /incidents/ with words": found(linkTo),
  "GET /incidents/ with a filter": (place, { typeId, priorityId }) => ({
    path: `/app?type=${typeId}&priority=${priorityId}`,
    shows: linkTo(place),
  }),
  "POST /incidents/": (place, world) => ({ path: "/app/report", fields: texts(whole(place, world)) }),
  "GET /incidents/{incident_id}": onPage(),
  "PUT /incidents/{incident_id}": form("edit", whole),
  "PUT /incidents/{incident_id} of an old version": form("edit", (place, world) => ({
    ...whole(place, world),
    version: 7,
  })),
  "PUT /incidents/{incident_id} that makes it Restricted": form("edit", (place, world) => ({
    ...whole(place, world),
    visibility: "Restricted",
  })),
  "DELETE /incidents/{incident_id}": form("delete", () => ({})),
  "POST /incidents/{incident_id}/retry": (place) => ({
    path: `${addressOf(place)}/retry`,
    fields: {},
    isQuiet: true,
  }),
  "GET /incidents/{incident_id}/participants/": onPage("", () => "scribe@example.com"),
  "POST /incidents/{incident_id}/participants/": form("people", () => ({
    email: "outsider@example.com",
    role: "participant",
  })),
  "POST /incidents/{incident_id}/participants/{participant_id}/roles": form("role", ({ scribeId }) => ({
    person: scribeId,
    role: "liaison",
  })),
  "POST /incidents/{incident_id}/participants/{participant_id}/renounce": form(
    "renounce",
    ({ scribeId }) => ({
      person: scribeId,
      role: "scribe",
    }),
  ),
  "POST /incidents/{incident_id}/participants/{participant_id}/leave of somebody else": form(
    "leave",
    ({ scribeId }) => ({ person: scribeId }),
  ),
  "GET /incidents/{incident_id}/reports/": onPage("?show=reports", word),
  "POST /incidents/{incident_id}/reports/": form("status-report", () => ({
    conditions: "Full",
    actions: "",
    needs: "",
  })),
  "GET /incidents/{incident_id}/postmortem/": (place) => ({ path: `${addressOf(place)}/postmortem` }),
  "POST /incidents/{incident_id}/postmortem/": form("postmortem", () => ({})),
  "GET /incidents/{incident_id}/events/": onPage("?show=notes", ({ eventId }) => `#event-${eventId}"`),
  "POST /incidents/{incident_id}/events/": form("note", () => ({ text: "Seen" })),
  "PUT /incidents/{incident_id}/events/{event_id} of somebody else": form("amend", ({ eventId }) => ({
    entry: eventId,
    version: 1,
    text: "Seen",
  })),
  "POST /incidents/{incident_id}/events/{event_id}/withdraw of somebody else": form(
    "withdraw",
    ({ eventId }) => ({ entry: eventId, version: 1 }),
  ),
  "GET /incidents/{incident_id}/events/{event_id}/revisions/": (place) => ({
    path: `${addressOf(place)}/entries/${place.eventId}`,
  }),
  "POST /incidents/{incident_id}/events/{event_id}/redact": form("redact", ({ eventId }) => ({
    entry: eventId,
    reason: "A password",
  })),
  "GET /incidents/{incident_id}/links/": onPage("", ({ linkedTitle }) => linkedTitle),
  "GET /incidents/{incident_id}/links/ of an incident linked with it": (place) => ({
    path: `/app/incidents/${place.linkedId}`,
    shows: place.word,
  }),
  "POST /incidents/{incident_id}/links/": form("link", (_, { openId }) => ({
    other: openId,
    kind: "related",
  })),
  "POST /incidents/{incident_id}/links/ with it": ({ incidentId }, { openId }) => ({
    path: `/app/incidents/${openId}/link`,
    fields: texts({ other: incidentId, kind: "duplicate" }),
  }),
  "DELETE /incidents/{incident_id}/links/{link_id}": form("unlink", ({ linkId }) => ({ link: linkId })),
  "DELETE /incidents/{incident_id}/links/{link_id} of an incident linked with it": ({
    linkedId,
    linkId,
  }) => ({
    path: `/app/incidents/${linkedId}/unlink`,
    fields: texts({ link: linkId }),
  }),
  "GET /incidents/{incident_id}/affected/": onPage(),
  "PUT /incidents/{incident_id}/affected/": (place) => ({
    path: `${addressOf(place)}/affected`,
    fields: {},
    isQuiet: true,
  }),
  "GET /incidents/{incident_id}/stream": ({ incidentId }) => ({ path: `/app/streams/${incidentId}` }),
  "GET /incidents/{incident_id}/messages/": onPage("?show=messages", word),
  "POST /incidents/{incident_id}/messages/": form("say", () => ({ text: "Hello" })),
  "GET /documents/ with words": found(({ documentId }) => `href="/app/documents/${documentId}"`),
  "GET /documents/{document_id}": document(),
  "GET /documents/{document_id}/content": document(),
  "PUT /documents/{document_id}/content": document("/edit", { text: "Changed", version: "1" }),
  "POST /documents/": form("document", () => ({ name: "Notes", type: "reference" })),
  "GET /documents/{document_id}/versions/": document("/versions"),
  "GET /documents/{document_id}/versions/{version}": document("/versions/1"),
  "POST /documents/{document_id}/redact": document("/redact", { reason: "A password" }),
  "GET /tasks/ with words": found(linkTo),
  "POST /tasks/": form("task", () => ({ text: "Free some" })),
  "GET /tasks/{task_id}": ({ taskId }) => ({ path: `/app/tasks/${taskId}` }),
  "PUT /tasks/{task_id}": form("task-edit", ({ taskId }) => ({
    task: taskId,
    version: 1,
    text: "Changed",
    due: "2026-12-01 12:00",
  })),
  "DELETE /tasks/{task_id}": form("task-delete", ({ taskId }) => ({ task: taskId })),
  "POST /incidents/{incident_id}/participants/ of a participant elsewhere": ({ onlyHere }, { openId }) => ({
    path: `/app/incidents/${openId}/people`,
    fields: { email: onlyHere.email, role: "participant" },
    isQuiet: true,
  }),
  "GET /search of a participant": found((place) => `<b dir="auto">${place.word}</b>`),
  "GET /search": found(linkTo),
  "GET /search in one type": found(linkTo),
  "GET /stats": (place) => ({
    path: "/app/numbers?by=service&since=2025-01-01&until=2028-12-31",
    shows: place.word,
  }),
};

const likeTheApi = ({ path, body }: { path: string; body?: object | string }): Use => ({
  path: `/app${path}`,
  fields: body as Record<string, string> | undefined,
});
const sent = (request: { path: string }): Use => ({ ...likeTheApi(request), fields: {} });
const access = ({ shows }: { shows?: string }): Use => ({ path: "/app/access", shows });
const applied = ({ body }: { body?: object | string }): Use => ({
  path: "/app/admin/roles",
  fields: { text: JSON.stringify(body) },
});
const textOf = ({ path }: { path: string }): Use => ({ path: `/app${path.replace("/content", "")}` });

/** The pages of the second table, from the requests of the API. */
export const pagesOfNoIncident: Readonly<Record<string, (request: Awaited<ReturnType<Prepare>>) => Use>> = {
  "GET /documents/{document_id} of no incident": likeTheApi,
  "GET /documents/{document_id}/content of no incident": textOf,
  "PUT /documents/{document_id}/content of no incident": (request) => ({
    path: `${textOf(request).path}/edit`,
    fields: { text: "quokka", version: "" },
  }),
  "GET /documents/{document_id}/versions/ of no incident": ({ path }) => ({
    path: `/app${path.slice(0, -1)}`,
  }),
  "GET /documents/{document_id}/versions/{version} of no incident": likeTheApi,
  "POST /documents/{document_id}/redact of no incident": likeTheApi,
  "GET /access/roles/": access,
  "GET /access/roles/ of other groups": ({ shows }) => access({ shows: `<b>${shows}</b>` }),
  "POST /access/roles/": applied,
  "PUT /access/roles/{role}": applied,
  "DELETE /access/roles/{role}": ({ path }) => ({ path: `/app/admin${path.slice(7)}/delete`, fields: {} }),
  "GET /access/roles/{role}/check": ({ path }) => ({
    path: `/app/admin${path.slice(7)}`,
    fields: {},
    isQuiet: true,
  }),
  "GET /access/requests/ of others": access,
  "POST /access/requests/": ({ body }) => ({
    path: "/app/access/request",
    fields: body as Record<string, string>,
  }),
  "POST /access/requests/{request_id}/approve of somebody else": sent,
  "POST /access/requests/{request_id}/approve with approver groups": sent,
  "POST /access/requests/{request_id}/deny of somebody else": sent,
  "POST /access/requests/{request_id}/deny with approver groups": sent,
  "POST /access/requests/{request_id}/cancel": sent,
  "POST /access/requests/{request_id}/review of somebody else": sent,
  "POST /access/requests/{request_id}/review with approver groups": sent,
  "GET /access/leases/ of others": access,
  "DELETE /access/leases/{lease_id} of somebody else": ({ path }) => ({
    path: `/app${path}/revoke`,
    fields: {},
  }),
  "GET /audit/": () => ({ path: "/app/admin/audit" }),
  "GET /incidents/stream": () => ({ path: "/app/streams" }),
  "GET /whoami": () => ({ path: "/app/profile" }),
  "DELETE /tokens/current": () => ({ path: "/app/sign_out", fields: {}, isQuiet: true }),
};

const catalog = "administration of the catalog, for admins";
const terminal = "credentials are issued in the terminal";
/** Rows without a page, and why. */
export const withoutPage: readonly (readonly [RegExp, string])[] = [
  [/^\w+ \/(teams|services|incident_types|incident_priorities|terms|definitions|applications)\//, catalog],
  [/^(?!PUT)\w+ \/individuals\//, catalog],
  [/^PUT \/individuals\/\{individual_id\}/, "the profile changes the reader's own record only"],
  [/^\w+ \/access\/roles\/\{role\}\/reconcile$/, "in the terminal"],
  [/^GET \/access\/roles\/\{role\}$/, "in the list, and in the administration for admins"],
  [/^\w+ \/access\/authority_keys\//, "administration of authorities"],
  [/^GET \/access\/(requests\/\{request_id\}|leases\/\{lease_id\}) of somebody else$/, "in the lists"],
  [/^GET \/access\/leases\/\{lease_id\}\/explain/, "in the terminal"],
  [/^DELETE \/access\/leases\/ of somebody else$/, "one lease at a time"],
  [/^POST \/access\/leases\//, terminal],
  [/^\w+ \/api\/v\d\//, terminal],
  [/^\w+ \/certificates\//, terminal],
  [/^\w+ \/sign_ins\//, "administration of sign-ins, for admins"],
  [/^GET \/plugins\/$/, "administration of plugins, for admins"],
  [/^GET \/incidents\/\{incident_id\}\/participants\/\{participant_id\}$/, "on the page of the incident"],
  [/^DELETE \/incidents\/\{incident_id\}\/participants\/\{participant_id\}$/, "administration"],
  [/^GET \/incidents\/\{incident_id\}\/(reports|events)\/\{\w+\}$/, "on the page of the incident"],
  [/^GET \/documents\/( with a filter| of no incident)?$/, "on the page of the incident, and found by words"],
  [/^GET \/tasks\/( with a filter)?$/, "on the page of the incident, and in My work"],
  [/^(PUT|DELETE) \/documents\/\{document_id\}( of no incident)?$/, "the pages change only texts"],
  [/^POST \/documents\/ (of no incident|that says)/, "the pages add documents to incidents only"],
];
