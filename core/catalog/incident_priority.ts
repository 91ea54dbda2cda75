import { getTableColumns } from "drizzle-orm";
import { incidentPriority } from "../../drizzle/schema/index.ts";
import { descriptionLength, parseName, parseText } from "../../platform/text.ts";
import { byText, listOf, type Resource } from "./resource.ts";

const columns = getTableColumns(incidentPriority);

export type IncidentPriorityFields = Pick<
  typeof incidentPriority.$inferSelect,
  "name" | "description" | "rank" | "reminderHours" | "reporterCommands"
>;

/** Only admins may write priorities: they decide who is called, and how often people are reminded. */
export const incidentPriorities: Resource<typeof incidentPriority, typeof columns, IncidentPriorityFields> = {
  one: "incident priority",
  many: "incident priorities",
  table: incidentPriority,
  columns,
  list: listOf("incident_priorities", incidentPriority, { name: incidentPriority.name }),
  filters: { name: byText("name", incidentPriority.name) },
  writers: "admins",
  deleted: "incident_priority.deleted",
  taken: { incident_priority_name_idx: "Another incident priority has this name" },
  parse: ({ name, description, rank, reminderHours, reporterCommands }) => ({
    name: parseName("name", name),
    description: parseText("description", description, descriptionLength),
    rank,
    reminderHours,
    reporterCommands,
  }),
};
