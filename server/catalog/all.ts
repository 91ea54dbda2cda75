import { Elysia } from "elysia";
import type { Deps } from "../deps.ts";
import { applicationRoutes } from "./applications.ts";
import { definitionRoutes } from "./definitions.ts";
import { incidentPriorityRoutes } from "./incident_priorities.ts";
import { incidentTypeRoutes } from "./incident_types.ts";
import { individualRoutes } from "./individuals.ts";
import { pluginRoutes } from "./plugins.ts";
import { serviceRoutes } from "./services.ts";
import { teamRoutes } from "./teams.ts";
import { termRoutes } from "./terms.ts";

/** The catalog: everything that exists independently of incidents. */
export const catalog = (deps: Deps) =>
  new Elysia({ name: "catalog" })
    .use(individualRoutes(deps))
    .use(teamRoutes(deps))
    .use(serviceRoutes(deps))
    .use(incidentTypeRoutes(deps))
    .use(incidentPriorityRoutes(deps))
    .use(termRoutes(deps))
    .use(definitionRoutes(deps))
    .use(applicationRoutes(deps))
    .use(pluginRoutes(deps));
