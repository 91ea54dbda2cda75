import { t } from "elysia";
import { applications } from "../../core/catalog/application.ts";
import { urlLength } from "../../platform/text.ts";
import type { Deps } from "../deps.ts";
import { nullable } from "../http/schema.ts";
import { description, name } from "./fields.ts";
import { catalogRoutes } from "./routes.ts";

/** Software that incidents affect. */
export const applicationRoutes = (deps: Deps) =>
  catalogRoutes(deps, applications, {
    path: "applications",
    parameter: "application_id",
    written: {
      ...{ name, description },
      uri: nullable(t.String({ maxLength: urlLength, description: "An http or https URL" })),
    },
    defaults: { description: "", uri: null },
    shown: {
      ...{ name: t.String(), description: t.String(), uri: nullable(t.String()) },
      ...{ source: nullable(t.String()), external_id: nullable(t.String()) },
    },
    fieldsOf: (body) => body,
    viewOf: ({ name, description, uri, source, externalId }) => ({
      ...{ name, description, uri },
      ...{ source, external_id: externalId },
    }),
  });
