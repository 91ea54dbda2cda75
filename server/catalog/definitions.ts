import { t } from "elysia";
import { definitions } from "../../core/catalog/definition.ts";
import { descriptionLength } from "../../platform/text.ts";
import type { Deps } from "../deps.ts";
import { nullable } from "../http/schema.ts";
import { ids, shownIds } from "./fields.ts";
import { catalogRoutes } from "./routes.ts";

/** The meanings of terms. */
export const definitionRoutes = (deps: Deps) =>
  catalogRoutes(deps, definitions, {
    path: "definitions",
    parameter: "definition_id",
    written: { text: t.String({ minLength: 1, maxLength: descriptionLength }), term_ids: ids },
    defaults: { term_ids: [] },
    shown: {
      ...{ text: t.String(), term_ids: shownIds },
      ...{ source: nullable(t.String()), external_id: nullable(t.String()) },
    },
    fieldsOf: ({ text, term_ids: termIds }) => ({ text, termIds }),
    viewOf: ({ text, termIds, source, externalId }) => ({
      ...{ text, term_ids: termIds },
      ...{ source, external_id: externalId },
    }),
  });
