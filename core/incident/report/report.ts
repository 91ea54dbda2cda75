import { getTableColumns } from "drizzle-orm";
import type { SelectResultFields } from "drizzle-orm/query-builders/select.types";
import { statusReport } from "../../../drizzle/schema/index.ts";
import { NotFound } from "../../../platform/errors.ts";
import { personColumns } from "../../catalog/person/person.ts";
import { type EntryState, entryStateOf } from "../timeline/entry.ts";

const { authorId, search, ...columns } = getTableColumns(statusReport);

/** From `statusReport` joined with its author. */
export const reportColumns = {
  ...columns,
  author: personColumns,
  entry: entryStateOf("report.written", statusReport.id),
};

export type Report = Omit<SelectResultFields<typeof reportColumns>, "entry"> & EntryState;

export function noSuchReport(): NotFound {
  return new NotFound("There is no such status report");
}
