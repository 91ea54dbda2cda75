import { t } from "elysia";
import { terms } from "../../core/catalog/term.ts";
import type { Deps } from "../deps.ts";
import { id, nullable } from "../http/schema.ts";
import { name } from "./fields.ts";
import { catalogRoutes } from "./routes.ts";

const discoverable = t.Boolean({ description: "Whether it is looked for in documents and descriptions" });
const definitionIds = t.Array(id, { description: "Written with the definitions" });

/** Words and phrases to find in documents. */
export const termRoutes = (deps: Deps) =>
  catalogRoutes(deps, terms, {
    path: "terms",
    parameter: "term_id",
    written: { text: name, discoverable },
    defaults: { discoverable: true },
    shown: {
      ...{ text: t.String(), discoverable, definition_ids: definitionIds },
      ...{ source: nullable(t.String()), external_id: nullable(t.String()) },
    },
    fieldsOf: (body) => body,
    viewOf: ({ text, discoverable, definitionIds, source, externalId }) => ({
      ...{ text, discoverable, definition_ids: definitionIds },
      ...{ source, external_id: externalId },
    }),
  });
