import { getTableColumns } from "drizzle-orm";
import type { SelectResultFields } from "drizzle-orm/query-builders/select.types";
import { statusReport } from "../../../drizzle/schema/index.ts";
import { NotFound } from "../../../platform/errors.ts";
import { personColumns } from "../../catalog/person/person.ts";

const { authorId, search, ...columns } = getTableColumns(statusReport);

/** From `statusReport` joined with its author. */
export const reportColumns = {
  ...columns,
  author: personColumns,
};

export type Report = SelectResultFields<typeof reportColumns>;

export function noSuchReport(): NotFound {
  return new NotFound("There is no such status report");
}
