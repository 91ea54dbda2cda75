import { t } from "elysia";
import { individuals } from "../../core/catalog/individual.ts";
import type { Deps } from "../deps.ts";
import { email, name, noReasons, reasons, reasonsOf, shownReasons, viewOfReasons } from "./fields.ts";
import { catalogRoutes } from "./routes.ts";

/** People, whether they sign in or not. */
export const individualRoutes = (deps: Deps) =>
  catalogRoutes(deps, individuals(deps.config.domain), {
    path: "individuals",
    parameter: "individual_id",
    written: { name, email, ...reasons },
    defaults: noReasons,
    shown: { name: t.String(), email: t.String(), ...shownReasons },
    fieldsOf: ({ name, email, ...body }) => ({ name, email, ...reasonsOf(body) }),
    viewOf: ({ name, email, ...item }) => ({ name, email, ...viewOfReasons(item) }),
  });
