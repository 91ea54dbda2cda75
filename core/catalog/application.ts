import { getTableColumns, isNull } from "drizzle-orm";
import { application } from "../../drizzle/schema/index.ts";
import { descriptionLength, parseName, parseText, parseUrl } from "../../platform/text.ts";
import { byText, listOf, type Resource } from "./resource.ts";
import { comesFromSource } from "./source.ts";

const { search, deletedAt, ...columns } = getTableColumns(application);

export type ApplicationFields = Pick<typeof application.$inferSelect, "name" | "description" | "uri">;

export const applications: Resource<typeof application, typeof columns, ApplicationFields> = {
  one: "application",
  many: "applications",
  table: application,
  columns,
  list: listOf("applications", application, { name: application.name }),
  filters: { source: byText("source", application.source), name: byText("name", application.name) },
  present: isNull(deletedAt),
  writers: "members",
  deleted: "application.deleted",
  taken: { application_own_name_idx: "Another application has this name" },
  parse: ({ name, description, uri }) => ({
    name: parseName("name", name),
    description: parseText("description", description, descriptionLength),
    uri: uri === null ? null : parseUrl("uri", uri),
  }),
  may: () => isNull(application.source),
  whyNot: (item) => comesFromSource("application", item),
  listedBy: "application",
};
