import { and, isNull, type SQL, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import {
  application,
  conversation,
  conversationMessage,
  definition,
  document,
  documentContent,
  event,
  incident,
  incidentType,
  individual,
  service,
  statusReport,
  task,
  team,
  term,
} from "../../../drizzle/schema/index.ts";
import { channelSlug } from "../../outbox/conversations.ts";
import {
  type AnyReader,
  mayKnow,
  mayReadIncident,
  mayReadOf,
  type Reader,
  readableKinds,
  readableKindsOf,
} from "../visibility/visibility.ts";

/** The records of one table in a search over everything. drizzle/triggers defines which words they match. */
export interface Searched {
  table: PgTable & Record<"id" | "search", PgColumn>;
  title: SQL;
  /** The source of the excerpt. */
  text: SQL;
  incidentId?: PgColumn | SQL;
  /** Restricts the matches to those of a partial index. */
  only?: SQL;
  /** The number of records grows with the work, not with the people. */
  large?: boolean;
  /** Those that the reader may find. Anything that shows part of an incident has its condition here. */
  found(by: Reader | AnyReader): SQL | undefined;
  /** For `newestMatches`. */
  kinds?(by: Reader | AnyReader): { open: SQL; theirs: SQL } | undefined;
}

const everyone = () => undefined;

const text = sql`${documentContent.content}`;
const contentOf = sql`select ${text} from ${documentContent} where ${documentContent.documentId} = ${document.id}`;

const nameOf = (incidentId: SQL) => sql`(select i.name from ${incident} as i where i.id = ${incidentId})`;

const incidentOfMessage = sql`(
  select ${conversation.incidentId} from ${conversation}
  where ${conversation.id} = ${conversationMessage.conversationId})`;

/**
 * What people said in a channel: the rule of `listMessages`. The channel's other messages repeat notes, reports and
 * changes, which are found themselves.
 */
function mayReadMessage(by: Reader | AnyReader): SQL {
  const { authorId, recipientId, conversationId } = conversationMessage;
  return sql`${authorId} is not null
    and (${recipientId} is null or exists (
      select from ${individual} where ${individual.id} in (${authorId}, ${recipientId})
        and ${individual.email} = ${by.user}))
    and exists (
      select from ${conversation} join ${incident} on ${incident.id} = ${conversation.incidentId}
      where ${conversation.id} = ${conversationId} and ${conversation.pluginSlug} = ${sql.raw(`'${channelSlug}'`)}
        and (${mayReadIncident(by)}))`;
}

export const searched = {
  incident: {
    table: incident,
    large: true,
    incidentId: incident.id,
    title: sql`${incident.name} || ': ' || ${incident.title}`,
    text: sql`${incident.description}`,
    found: (by) => mayReadIncident(by),
    kinds: readableKinds,
  },
  document: {
    table: document,
    large: true,
    incidentId: document.incidentId,
    title: sql`${document.name}`,
    text: sql`concat_ws(' ', ${document.description}, (${contentOf}))`,
    found: (by) => mayReadOf(by, document.incidentId),
    kinds: (by) => readableKindsOf(by, document),
  },
  task: {
    table: task,
    large: true,
    incidentId: task.incidentId,
    title: sql`${task.description}`,
    text: sql`${task.description}`,
    found: (by) => and(isNull(task.deletedAt), mayReadOf(by, task.incidentId)),
    kinds: (by) => readableKindsOf(by, task),
  },
  note: {
    table: event,
    large: true,
    incidentId: event.incidentId,
    title: sql`${nameOf(sql`${event.incidentId}`)} || ': note by ' || ${event.actor}`,
    text: sql`${event.description}`,
    only: sql`${event.kind} = 'note'`,
    found: (by) => mayReadOf(by, event.incidentId),
    kinds: (by) => readableKindsOf(by, event),
  },
  report: {
    table: statusReport,
    large: true,
    incidentId: statusReport.incidentId,
    title: sql`${nameOf(sql`${statusReport.incidentId}`)} || ': status report'`,
    text: sql`concat_ws(' ', ${statusReport.conditions}, ${statusReport.actions}, ${statusReport.needs})`,
    found: (by) => mayReadOf(by, statusReport.incidentId),
    kinds: (by) => readableKindsOf(by, statusReport),
  },
  message: {
    table: conversationMessage,
    large: true,
    incidentId: incidentOfMessage,
    title: sql`${nameOf(incidentOfMessage)} || ': message'`,
    text: sql`${conversationMessage.text}`,
    found: mayReadMessage,
    kinds: (by) =>
      readableKindsOf(
        by,
        conversationMessage,
        (incidents) => sql`${conversationMessage.conversationId} = any(array(
          select ${conversation.id} from ${conversation} where ${conversation.incidentId} = any(${incidents})))`,
      ),
  },
  term: {
    table: term,
    title: sql`${term.text}`,
    text: sql`${term.text}`,
    found: () => isNull(term.deletedAt),
  },
  definition: {
    table: definition,
    title: sql`${definition.text}`,
    text: sql`${definition.text}`,
    found: everyone,
  },
  individual: {
    table: individual,
    title: sql`${individual.name}`,
    text: sql`${individual.email}`,
    found: (by) => mayKnow(by),
  },
  team: {
    table: team,
    title: sql`${team.name}`,
    text: sql`${team.description}`,
    found: everyone,
  },
  service: {
    table: service,
    title: sql`${service.name}`,
    text: sql`${service.description}`,
    found: everyone,
  },
  application: {
    table: application,
    title: sql`${application.name}`,
    text: sql`${application.description}`,
    found: () => isNull(application.deletedAt),
  },
  incident_type: {
    table: incidentType,
    title: sql`${incidentType.name}`,
    text: sql`${incidentType.description}`,
    found: everyone,
  },
} as const satisfies Record<string, Searched>;

export type SearchedType = keyof typeof searched;

export const searchedTypes = Object.keys(searched) as [SearchedType, ...SearchedType[]];
