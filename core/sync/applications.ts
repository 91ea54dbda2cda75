import { application } from "../../drizzle/schema/index.ts";
import { type ApplicationFields, applications } from "../catalog/application.ts";
import { type ApplicationItem, applicationItem } from "../plugin/methods.ts";
import type { Followed } from "./keep.ts";

/** For application-sync: a source and a person write the same fields of an application. */
export const followedApplications: Followed<ApplicationItem, ApplicationFields> = {
  table: application,
  schema: applicationItem,
  parse: ({ name, description = "", uri = null }) => {
    const fields = applications.parse({ name, description, uri });
    return { name: fields.name, description: fields.description ?? "", uri: fields.uri ?? null };
  },
};
