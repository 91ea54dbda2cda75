import { getTableColumns, sql } from "drizzle-orm";
import { document, event } from "../../../drizzle/schema/index.ts";

const { id, incidentId } = document;

/**
 * Whether a line proposes a document that nobody is told of now. Lines that were written earlier also name those of other
 * incidents, which may have become Restricted since; they are shown as what is gone, or one could tell that they exist.
 */
const proposesHidden = sql`${event.kind} = 'document.proposed' and not exists (
  select from ${document} where ${id} = (${event.data}->>'document_id')::bigint
    and (${incidentId} is null or ${incidentId} = ${event.incidentId}))`;

/** Columns of an event as it is shown, whenever it was written. The timeline itself is never rewritten. */
export const eventColumns = {
  ...getTableColumns(event),
  // One deeper, where drizzle leaves the columns' tables alone.
  description: sql<string>`${sql`case when ${proposesHidden} then 'Document proposed: one that is gone'
    else ${event.description} end`}`,
  data: sql`${sql`case when ${proposesHidden} then ${event.data} - 'document_id' else ${event.data} end`}`.mapWith(
    event.data,
  ),
};
