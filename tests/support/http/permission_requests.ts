import { eq } from "drizzle-orm";
import * as schema from "../../../drizzle/schema/index.ts";
import type { Place, World } from "./permission_world.ts";

/** A request of a row in docs/permissions.md. */
export interface Request {
  path: string;
  body?: object | string;
  headers?: Record<string, string>;
  /** For lists: a text from the incident. The permission decides whether the response contains it. */
  shows?: string;
}

/** Several requests for one row, which must all have the same result. */
type Requests = (place: Place, world: World) => Request[];

const one =
  (request: (place: Place, world: World) => Request): Requests =>
  (place, world) => [request(place, world)];

const of = ({ incidentId }: Place) => `/incidents/${incidentId}`;
const listed = (place: Place, path: string, queries: string[] = [""]): Request[] =>
  queries.map((query) => ({ path: `${path}?limit=200${query}`, shows: place.word }));

const kind = ({ typeId, priorityId }: World) => ({
  incident_type_id: typeId,
  incident_priority_id: priorityId,
});
const wholeIncident = ({ visibility }: Place, world: World) => ({
  title: "Changed",
  description: "",
  visibility,
  status: "Active",
  resolution: null,
  version: 1,
  ...kind(world),
});
const wholeDocument = { name: "Changed", description: "", resource_type: "reference", weblink: null };
const wholeIndividual = {
  name: "Changed",
  incident_type_ids: [],
  incident_priority_ids: [],
  term_ids: [],
  version: 1,
};
const wholeTask = {
  description: "Changed",
  status: "Open",
  owner: null,
  assignees: [],
  reminders: true,
  version: 1,
  resolve_by: "2026-12-01T12:00:00Z",
};

const incidentFilters = (place: Place, { typeId, priorityId }: World) => [
  "&status=Active",
  "&status=Active,Stable",
  `&visibility=${place.visibility}`,
  `&incident_type_id=${typeId}`,
  `&incident_priority_id=${priorityId}`,
  "&commander=commander@example.com",
  "&participant=scribe@example.com",
  "&reported_after=2026-01-01T00:00:00Z",
  "&reported_before=2027-01-01T00:00:00Z",
];
const documentFilters = ({ incidentId, word }: Place) => [
  `&incident_id=${incidentId}`,
  "&resource_type=reference",
  `&name=${word}`,
];
const taskFilters = ({ incidentId }: Place) =>
  [
    `&incident_id=${incidentId}`,
    "&status=Open",
    "&owner=scribe@example.com",
    "&assignee=scribe@example.com",
    "&overdue=true",
  ].map((filter) => `&sort=-id${filter}`);

const participants = (place: Place) => `${of(place)}/participants`;

/** The requests of the first table of docs/permissions.md, by their texts. The incident need not exist. */
export const ofAnIncident: Readonly<Record<string, Requests>> = {
  "GET /incidents/": (place) => listed(place, "/incidents/"),
  "GET /incidents/ with words": (place) => listed(place, "/incidents/", [`&q=${place.word}`]),
  "GET /incidents/ with a filter": (place, world) =>
    listed(place, "/incidents/", incidentFilters(place, world)),
  "POST /incidents/": one(({ visibility }, world) => ({
    path: "/incidents/",
    body: { title: "Disk full", description: "", visibility, ...kind(world) },
  })),
  "GET /incidents/{incident_id}": one((place) => ({ path: of(place) })),
  "PUT /incidents/{incident_id}": one((place, world) => ({
    path: of(place),
    body: wholeIncident(place, world),
  })),
  "PUT /incidents/{incident_id} of an old version": one((place, world) => ({
    path: of(place),
    body: { ...wholeIncident(place, world), version: 7 },
  })),
  "PUT /incidents/{incident_id} that makes it Restricted": one((place, world) => ({
    path: of(place),
    body: { ...wholeIncident(place, world), visibility: "Restricted" },
  })),
  "DELETE /incidents/{incident_id}": one((place) => ({ path: of(place) })),
  "GET /incidents/{incident_id}/postmortem/": one((place) => ({ path: `${of(place)}/postmortem/` })),
  "POST /incidents/{incident_id}/postmortem/": one((place) => ({
    path: `${of(place)}/postmortem/`,
    body: {},
  })),
  "POST /incidents/{incident_id}/retry": one((place) => ({ path: `${of(place)}/retry`, body: {} })),
  "GET /incidents/{incident_id}/participants/": one((place) => ({
    path: `${participants(place)}/`,
    shows: "scribe@example.com",
  })),
  "POST /incidents/{incident_id}/participants/": one((place) => ({
    path: `${participants(place)}/`,
    body: { individual_id: place.outsiderId },
  })),
  "GET /incidents/{incident_id}/participants/{participant_id}": one((place) => ({
    path: `${participants(place)}/${place.scribeId}`,
  })),
  "DELETE /incidents/{incident_id}/participants/{participant_id}": one((place) => ({
    path: `${participants(place)}/${place.leftId}`,
  })),
  "POST /incidents/{incident_id}/participants/{participant_id}/roles": one((place) => ({
    path: `${participants(place)}/${place.scribeId}/roles`,
    body: { role: "liaison" },
  })),
  "POST /incidents/{incident_id}/participants/{participant_id}/renounce": one((place) => ({
    path: `${participants(place)}/${place.scribeId}/renounce`,
    body: { role: "scribe" },
  })),
  "POST /incidents/{incident_id}/participants/{participant_id}/leave of somebody else": one((place) => ({
    path: `${participants(place)}/${place.scribeId}/leave`,
    body: {},
  })),
  "GET /incidents/{incident_id}/reports/": (place) => listed(place, `${of(place)}/reports/`),
  "POST /incidents/{incident_id}/reports/": one((place) => ({
    path: `${of(place)}/reports/`,
    body: { conditions: "Full", actions: "", needs: "" },
  })),
  "GET /incidents/{incident_id}/reports/{report_id}": one((place) => ({
    path: `${of(place)}/reports/${place.reportId}`,
  })),
  "GET /incidents/{incident_id}/events/": (place) =>
    listed(place, `${of(place)}/events/`, ["", "&kind=note"]),
  "POST /incidents/{incident_id}/events/": one((place) => ({
    path: `${of(place)}/events/`,
    body: { description: "Seen" },
  })),
  "GET /incidents/{incident_id}/events/{event_id}": one((place) => ({
    path: `${of(place)}/events/${place.eventId}`,
  })),
  "PUT /incidents/{incident_id}/events/{event_id} of somebody else": one((place) => ({
    path: `${of(place)}/events/${place.eventId}`,
    body: { version: 1, description: "Seen" },
  })),
  "POST /incidents/{incident_id}/events/{event_id}/withdraw of somebody else": one((place) => ({
    path: `${of(place)}/events/${place.eventId}/withdraw`,
    body: { version: 1 },
  })),
  "GET /incidents/{incident_id}/events/{event_id}/revisions/": one((place) => ({
    path: `${of(place)}/events/${place.eventId}/revisions/`,
  })),
  "POST /incidents/{incident_id}/events/{event_id}/redact": one((place) => ({
    path: `${of(place)}/events/${place.eventId}/redact`,
    body: { reason: "A password" },
  })),
  "GET /incidents/{incident_id}/links/": one((place) => ({
    path: `${of(place)}/links/`,
    shows: place.linkedTitle,
  })),
  "GET /incidents/{incident_id}/links/ of an incident linked with it": (place) =>
    listed(place, `/incidents/${place.linkedId}/links/`),
  "POST /incidents/{incident_id}/links/": one((place, world) => ({
    path: `${of(place)}/links/`,
    body: { incident: String(world.openId), kind: "related" },
  })),
  "POST /incidents/{incident_id}/links/ with it": one((place, world) => ({
    path: `/incidents/${world.openId}/links/`,
    body: { incident: String(place.incidentId), kind: "duplicate" },
  })),
  "DELETE /incidents/{incident_id}/links/{link_id}": one((place) => ({
    path: `${of(place)}/links/${place.linkId}`,
  })),
  "DELETE /incidents/{incident_id}/links/{link_id} of an incident linked with it": one((place) => ({
    path: `/incidents/${place.linkedId}/links/${place.linkId}`,
  })),
  "GET /incidents/{incident_id}/affected/": one((place) => ({ path: `${of(place)}/affected/` })),
  "PUT /incidents/{incident_id}/affected/": one((place) => ({
    path: `${of(place)}/affected/`,
    body: { service_ids: [], application_ids: [] },
  })),
  "GET /incidents/{incident_id}/stream": one((place) => ({ path: `${of(place)}/stream` })),
  "GET /incidents/{incident_id}/messages/": (place) => listed(place, `${of(place)}/messages/`),
  "POST /incidents/{incident_id}/messages/": one((place) => ({
    path: `${of(place)}/messages/`,
    body: { text: "Hello" },
  })),
  "GET /documents/": (place) => listed(place, "/documents/", ["", "&sort=-id"]),
  "GET /documents/ with words": (place) => listed(place, "/documents/", [`&q=${place.word}`]),
  "GET /documents/ with a filter": (place) => listed(place, "/documents/", documentFilters(place)),
  "POST /documents/": one(({ incidentId }) => ({
    path: "/documents/",
    body: { name: "Notes", resource_type: "reference", incident_id: incidentId },
  })),
  "GET /documents/{document_id}": one(({ documentId }) => ({ path: `/documents/${documentId}` })),
  "PUT /documents/{document_id}": one(({ documentId }) => ({
    path: `/documents/${documentId}`,
    body: { ...wholeDocument, version: 1 },
  })),
  "DELETE /documents/{document_id}": one(({ documentId }) => ({ path: `/documents/${documentId}` })),
  "GET /documents/{document_id}/content": one(({ documentId }) => ({
    path: `/documents/${documentId}/content`,
  })),
  "PUT /documents/{document_id}/content": one(({ documentId }) => ({
    path: `/documents/${documentId}/content`,
    body: { text: "Changed", version: "1" },
  })),
  "GET /documents/{document_id}/versions/": one(({ documentId }) => ({
    path: `/documents/${documentId}/versions/`,
  })),
  "GET /documents/{document_id}/versions/{version}": one(({ documentId }) => ({
    path: `/documents/${documentId}/versions/1`,
  })),
  "POST /documents/{document_id}/redact": one(({ documentId }) => ({
    path: `/documents/${documentId}/redact`,
    body: { reason: "A password" },
  })),
  "GET /tasks/": (place) => listed(place, "/tasks/", ["&sort=-id"]),
  "GET /tasks/ with words": (place) => listed(place, "/tasks/", [`&q=${place.word}`]),
  "GET /tasks/ with a filter": (place) => listed(place, "/tasks/", taskFilters(place)),
  "POST /tasks/": one(({ incidentId }) => ({
    path: "/tasks/",
    body: { incident_id: incidentId, description: "Free some" },
  })),
  "GET /tasks/{task_id}": one(({ taskId }) => ({ path: `/tasks/${taskId}` })),
  "PUT /tasks/{task_id}": one(({ taskId }) => ({ path: `/tasks/${taskId}`, body: wholeTask })),
  "DELETE /tasks/{task_id}": one(({ taskId }) => ({ path: `/tasks/${taskId}` })),
  "GET /individuals/ of a participant": (place) => listed(place, "/individuals/", ["", "&sort=-id"]),
  "GET /individuals/ of a participant with words": (place) =>
    listed(place, "/individuals/", [`&q=${place.word}`]),
  "GET /individuals/ of a participant with a filter": (place) =>
    listed(place, "/individuals/", [`&name=${place.word}`, `&email=${place.onlyHere.email}`]),
  "POST /individuals/ with the address of a participant": one(({ onlyHere: { email } }) => ({
    path: "/individuals/",
    body: { name: "Somebody", email },
  })),
  "GET /individuals/{individual_id} of a participant": one(({ onlyHere }) => ({
    path: `/individuals/${onlyHere.individualId}`,
  })),
  "PUT /individuals/{individual_id} of a participant": one(({ onlyHere: { individualId, email } }) => ({
    path: `/individuals/${individualId}`,
    body: { ...wholeIndividual, email },
  })),
  "DELETE /individuals/{individual_id} of a participant": one(({ onlyHere }) => ({
    path: `/individuals/${onlyHere.individualId}`,
  })),
  "POST /incidents/{incident_id}/participants/ of a participant elsewhere": one((place, world) => ({
    path: `/incidents/${world.openId}/participants/`,
    body: { individual_id: place.onlyHere.individualId },
  })),
  "GET /search of a participant": ({ word }) =>
    ["", "&type=individual"].map((type) => ({ path: `/search?limit=50&q=${word}${type}`, shows: word })),
  "GET /search": one(({ word }) => ({ path: `/search?limit=50&q=${word}`, shows: word })),
  "GET /search in one type": ({ word }) =>
    ["incident", "document", "task", "note", "report", "message"].map((type) => ({
      path: `/search?q=${word}&type=${type}`,
      shows: word,
    })),
  "GET /stats": one(({ word }) => ({
    path: "/stats?by=service&until=2029-01-01T00:00:00Z&since=2025-01-01T00:00:00Z",
    shows: word,
  })),
};

/** Removes records that would make the request fail for everyone. */
export async function clearTheWay({ server: { db } }: World, request: string, place: Place): Promise<void> {
  if (request !== "DELETE /incidents/{incident_id}") return;
  await db.delete(schema.task).where(eq(schema.task.id, place.taskId));
  await db.delete(schema.document).where(eq(schema.document.id, place.documentId));
}
