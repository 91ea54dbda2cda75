import { and, isNull, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import {
  application,
  definition,
  document,
  documentContent,
  incident,
  incidentType,
  individual,
  service,
  task,
  team,
  term,
} from "../../../drizzle/schema/index.ts";
import {
  type AnyReader,
  mayKnow,
  mayReadIncident,
  mayReadOf,
  type Reader,
} from "../visibility/visibility.ts";

/** The records of one table in a search over everything. drizzle/triggers defines which words they match. */
export interface Searched {
  id: PgColumn;
  search: PgColumn;
  title: SQL;
  /** The source of the excerpt. */
  text: SQL;
  incidentId?: PgColumn;
  /** The number of records grows with the work, not with the people. */
  large?: boolean;
  /** Those that the reader may find. Anything that shows part of an incident has its condition here. */
  found(by: Reader | AnyReader): SQL | undefined;
}

const everyone = () => undefined;

const text = sql`${documentContent.content}`;
const contentOf = sql`select ${text} from ${documentContent} where ${documentContent.documentId} = ${document.id}`;

export const searched = {
  incident: {
    ...{ id: incident.id, search: incident.search, large: true, incidentId: incident.id },
    title: sql`${incident.name} || ': ' || ${incident.title}`,
    text: sql`${incident.description}`,
    found: (by) => mayReadIncident(by),
  },
  document: {
    ...{ id: document.id, search: document.search, large: true, incidentId: document.incidentId },
    title: sql`${document.name}`,
    text: sql`concat_ws(' ', ${document.description}, (${contentOf}))`,
    found: (by) => mayReadOf(by, document.incidentId),
  },
  task: {
    ...{ id: task.id, search: task.search, large: true, incidentId: task.incidentId },
    ...{ title: sql`${task.description}`, text: sql`${task.description}` },
    found: (by) => and(isNull(task.deletedAt), mayReadOf(by, task.incidentId)),
  },
  term: {
    ...{ id: term.id, search: term.search, title: sql`${term.text}`, text: sql`${term.text}` },
    found: () => isNull(term.deletedAt),
  },
  definition: {
    ...{ id: definition.id, search: definition.search },
    ...{ title: sql`${definition.text}`, text: sql`${definition.text}`, found: everyone },
  },
  individual: {
    ...{ id: individual.id, search: individual.search },
    ...{ title: sql`${individual.name}`, text: sql`${individual.email}`, found: (by) => mayKnow(by) },
  },
  team: {
    ...{ id: team.id, search: team.search },
    ...{ title: sql`${team.name}`, text: sql`${team.description}`, found: everyone },
  },
  service: {
    ...{ id: service.id, search: service.search },
    ...{ title: sql`${service.name}`, text: sql`${service.description}`, found: everyone },
  },
  application: {
    ...{ id: application.id, search: application.search },
    ...{ title: sql`${application.name}`, text: sql`${application.description}` },
    found: () => isNull(application.deletedAt),
  },
  incident_type: {
    ...{ id: incidentType.id, search: incidentType.search },
    ...{ title: sql`${incidentType.name}`, text: sql`${incidentType.description}`, found: everyone },
  },
} as const satisfies Record<string, Searched>;

export type SearchedType = keyof typeof searched;

export const searchedTypes = Object.keys(searched) as [SearchedType, ...SearchedType[]];
