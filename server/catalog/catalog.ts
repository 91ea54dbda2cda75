import { Type } from "@sinclair/typebox";
import { Elysia, t } from "elysia";
import { applications } from "../../core/catalog/application.ts";
import { definitions } from "../../core/catalog/definition.ts";
import { incidentPriorities } from "../../core/catalog/incident_priority.ts";
import { incidentTypes } from "../../core/catalog/incident_type.ts";
import { individuals } from "../../core/catalog/individual.ts";
import { teams } from "../../core/catalog/team.ts";
import { terms } from "../../core/catalog/term.ts";
import { pluginTypes } from "../../core/plugin.ts";
import { visibilities } from "../../drizzle/schema/index.ts";
import { fromApi } from "../../platform/names.ts";
import { descriptionLength, urlLength } from "../../platform/text.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { problemSchema } from "../http/error.ts";
import { closed, id, nullable, oneOf, pageOf } from "../http/schema.ts";
import { description, email, ids, name, noReasons, reasons, shownIds, shownReasons } from "./fields.ts";
import { catalogRoutes } from "./routes.ts";
import { serviceRoutes } from "./services.ts";

/** People, whether they sign in or not. */
const individualRoutes = (deps: Deps) =>
  catalogRoutes(deps, individuals(deps.config.domain), {
    path: "individuals",
    parameter: "individual_id",
    written: { name, email, ...reasons },
    defaults: noReasons,
    shown: { name: t.String(), email: t.String(), ...shownReasons },
    fieldsOf: fromApi,
  });

/** Groups of people who are contacted together. */
const teamRoutes = (deps: Deps) =>
  catalogRoutes(deps, teams(deps.config.domain), {
    path: "teams",
    parameter: "team_id",
    written: { name, description, email: nullable(email), ...reasons },
    defaults: { description: "", email: null, ...noReasons },
    shown: { name: t.String(), description: t.String(), email: nullable(t.String()), ...shownReasons },
    fieldsOf: fromApi,
  });

const visibility = oneOf(visibilities, {
  description: "The visibility of its incidents, unless the reporter chooses another",
});
const commander = nullable(id);
const templates = t.Array(t.Object({ resource_type: name, document_id: id }, closed), {
  maxItems: 200,
  description: "An incident gets a document of each resource type, with a copy of this document's text",
});

/** The kinds of incidents. */
const postmortem = t.Boolean({
  description:
    "Whether a closed incident of this type is due a post-mortem (`GET /incidents/?postmortem_due=true`)",
});

const incidentTypeRoutes = (deps: Deps) =>
  catalogRoutes(deps, incidentTypes, {
    path: "incident_types",
    parameter: "incident_type_id",
    written: { name, description, visibility, commander_service_id: commander, postmortem, templates },
    defaults: {
      description: "",
      visibility: "Open",
      commander_service_id: null,
      postmortem: false,
      templates: [],
    },
    shown: {
      name: t.String(),
      description: t.String(),
      visibility,
      commander_service_id: commander,
      postmortem,
      templates,
    },
    fieldsOf: fromApi,
  });

/** A PostgreSQL integer. */
const rank = Type.Integer({
  minimum: -2_147_483_648,
  maximum: 2_147_483_647,
  description: "Higher is more urgent",
});
const reminderHours = Type.Integer({
  minimum: 1,
  maximum: 8760,
  description: "Hours between two reminders to write a status report",
});
const reporterCommands = t.Boolean({ description: "The reporter commands, and nobody is called" });

/** How urgent incidents can be. */
const incidentPriorityRoutes = (deps: Deps) =>
  catalogRoutes(deps, incidentPriorities, {
    path: "incident_priorities",
    parameter: "incident_priority_id",
    written: {
      name,
      description,
      rank,
      reminder_hours: reminderHours,
      reporter_commands: reporterCommands,
    },
    defaults: { description: "", rank: 0, reporter_commands: false },
    shown: {
      name: t.String(),
      description: t.String(),
      rank,
      reminder_hours: Type.Integer(),
      reporter_commands: reporterCommands,
    },
    fieldsOf: fromApi,
  });

const discoverable = t.Boolean({ description: "Whether documents and descriptions are searched for it" });
const definitionIds = t.Array(id, { description: "Set by the definitions" });

/** Words and phrases to find in documents. */
const termRoutes = (deps: Deps) =>
  catalogRoutes(deps, terms, {
    path: "terms",
    parameter: "term_id",
    written: { text: name, discoverable },
    defaults: { discoverable: true },
    shown: {
      text: t.String(),
      discoverable,
      definition_ids: definitionIds,
      source: nullable(t.String()),
      external_id: nullable(t.String()),
    },
    fieldsOf: fromApi,
  });

/** The meanings of terms. */
const definitionRoutes = (deps: Deps) =>
  catalogRoutes(deps, definitions, {
    path: "definitions",
    parameter: "definition_id",
    written: { text: t.String({ minLength: 1, maxLength: descriptionLength }), term_ids: ids },
    defaults: { term_ids: [] },
    shown: {
      text: t.String(),
      term_ids: shownIds,
      source: nullable(t.String()),
      external_id: nullable(t.String()),
    },
    fieldsOf: fromApi,
  });

/** Software that incidents affect. */
const applicationRoutes = (deps: Deps) =>
  catalogRoutes(deps, applications, {
    path: "applications",
    parameter: "application_id",
    written: {
      name,
      description,
      uri: nullable(t.String({ maxLength: urlLength, description: "An http or https URL" })),
    },
    defaults: { description: "", uri: null },
    shown: {
      name: t.String(),
      description: t.String(),
      uri: nullable(t.String()),
      source: nullable(t.String()),
      external_id: nullable(t.String()),
    },
    fieldsOf: fromApi,
  });

const pluginView = t.Object(
  {
    title: t.String(),
    slug: t.String(),
    version: t.String(),
    type: t.String({ description: pluginTypes.join(", ") }),
    author: t.String(),
    description: t.String(),
    chosen: t.Boolean({ description: "Whether it serves, as configured" }),
  },
  closed,
);

/** Every installed plugin, as `svc plugin list` prints it, without its configuration. */
const pluginRoutes = (deps: Deps) =>
  new Elysia({ name: "plugin", prefix: "/plugins" }).use(actorMacro(deps)).get(
    "/",
    () => ({
      items: deps.registry.all.map(({ title, slug, version, type, author, description }) => ({
        title,
        slug,
        version,
        type,
        author,
        description,
        chosen: deps.plugins.find(type, slug) !== undefined,
      })),
      next_cursor: null,
    }),
    { actor: true, response: { 200: pageOf(pluginView), 401: problemSchema } },
  );

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
