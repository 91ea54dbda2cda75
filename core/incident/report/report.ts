import { statusReport } from "../../../drizzle/schema/index.ts";
import { NotFound } from "../../../platform/errors.ts";
import { type Person, personColumns } from "../../catalog/person/person.ts";

export interface Report {
  id: number;
  incidentId: number;
  author: Person;
  conditions: string;
  actions: string;
  needs: string;
  createdAt: Date;
}

/** From `statusReport` joined with its author. */
export const reportColumns = {
  id: statusReport.id,
  incidentId: statusReport.incidentId,
  author: personColumns,
  conditions: statusReport.conditions,
  actions: statusReport.actions,
  needs: statusReport.needs,
  createdAt: statusReport.createdAt,
};

export function noSuchReport(): NotFound {
  return new NotFound("There is no such status report");
}
