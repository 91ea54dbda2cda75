import { t } from "elysia";
import { teams } from "../../core/catalog/team.ts";
import type { Deps } from "../deps.ts";
import { nullable } from "../http/schema.ts";
import {
  description,
  email,
  name,
  noReasons,
  reasons,
  reasonsOf,
  shownReasons,
  viewOfReasons,
} from "./fields.ts";
import { catalogRoutes } from "./routes.ts";

/** Groups of people who are contacted together. */
export const teamRoutes = (deps: Deps) =>
  catalogRoutes(deps, teams(deps.config.domain), {
    path: "teams",
    parameter: "team_id",
    written: { name, description, email: nullable(email), ...reasons },
    defaults: { description: "", email: null, ...noReasons },
    shown: { name: t.String(), description: t.String(), email: nullable(t.String()), ...shownReasons },
    fieldsOf: ({ name, description, email, ...body }) => ({ name, description, email, ...reasonsOf(body) }),
    viewOf: ({ name, description, email, ...item }) => ({
      ...{ name, description, email },
      ...viewOfReasons(item),
    }),
  });
