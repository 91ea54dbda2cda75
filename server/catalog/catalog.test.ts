import * as schema from "../../drizzle/schema/index.ts";
import { insertRow } from "../../tests/support/http/catalog.ts";
import { type ResourceCase, resourceSuite } from "../../tests/support/http/resource_suite.ts";

const noReasons = { incident_type_ids: [], incident_priority_ids: [], term_ids: [] };
const reasonFields = Object.keys(noReasons);
const wrongDescription: ResourceCase["wrong"] = [
  ["a long description", { description: "a".repeat(20_001) }, "description"],
  ["NUL in a description", { description: "secretly\0" }, "description"],
];
const wrongEmail: ResourceCase["wrong"] = [
  "secretly@",
  "a@b@secretly",
  "",
  "sec retly@example.com",
  "a\0b",
].map((email) => [`the email ${JSON.stringify(email)}`, { email }, "email"]);

resourceSuite([
  {
    path: "/individuals/",
    writers: "members in part",
    audit: "individual.deleted",
    fields: (n) => ({ name: `Person ${n}`, email: `person-${n}@example.com`, ...noReasons }),
    optional: reasonFields,
    text: "name",
    lines: false,
    searched: true,
    sorts: ["id", "name"],
    filters: ["email", "name"],
    wrong: wrongEmail,
    taken: { fields: ["email"], detail: "Another individual has this email" },
    refer: async (db, individualId, now) => {
      const serviceId = await insertRow(db, schema.service, { name: `Of ${individualId}` });
      await db.insert(schema.rotation).values({ serviceId, startsAt: now, shiftHours: 1 });
      await db.insert(schema.rotationMember).values({ serviceId, position: 0, individualId });
      return "a rotation";
    },
  },
  {
    path: "/teams/",
    writers: "members in part",
    audit: "team.deleted",
    fields: (n) => ({ name: `Team ${n}`, description: "Many", email: `team-${n}@example.com`, ...noReasons }),
    optional: ["description", "email", ...reasonFields],
    text: "name",
    lines: false,
    searched: true,
    sorts: ["id", "name"],
    filters: ["name"],
    wrong: [...wrongDescription, ...wrongEmail],
    taken: { fields: ["name"], detail: "Another team has this name" },
  },
  {
    path: "/services/",
    writers: "admins",
    audit: "service.deleted",
    fields: (n) => ({
      name: `Service ${n}`,
      description: "Of many",
      plugin_slug: null,
      external_id: null,
      rotation: null,
    }),
    optional: ["description", "plugin_slug", "external_id", "rotation"],
    text: "name",
    lines: false,
    searched: true,
    sorts: ["id", "name"],
    filters: ["name"],
    wrong: wrongDescription,
    taken: { fields: ["name"], detail: "Another service has this name" },
    refer: async (db, commanderServiceId) => {
      await insertRow(db, schema.incidentType, { name: `Of ${commanderServiceId}`, commanderServiceId });
      return "an incident type";
    },
  },
  {
    path: "/incident_types/",
    writers: "admins",
    audit: "incident_type.deleted",
    fields: (n) => ({
      name: `Type ${n}`,
      description: "Bad",
      visibility: n % 2 ? "Open" : "Restricted",
      commander_service_id: null,
      postmortem: n % 2 === 0,
      templates: [],
    }),
    optional: ["description", "visibility", "commander_service_id", "postmortem", "templates"],
    text: "name",
    lines: false,
    searched: true,
    sorts: ["id", "name"],
    filters: ["name"],
    wrong: [
      ...wrongDescription,
      ["another visibility", { visibility: "Hidden" }, "visibility"],
      ["a missing service", { commander_service_id: 999_999 }, "commander_service_id"],
      ["a service as text", { commander_service_id: "1" }, "commander_service_id"],
      ["neither yes nor no", { postmortem: "yes" }, "postmortem"],
      [
        "a template without a document",
        { templates: [{ resource_type: "review", document_id: 999_999 }] },
        "templates",
      ],
      ["a template without a kind", { templates: [{ document_id: 1 }] }, "templates"],
      ["a template of an empty kind", { templates: [{ resource_type: " ", document_id: 1 }] }, "templates"],
      [
        "a field of a template",
        { templates: [{ resource_type: "a", document_id: 1, x: 1 }] },
        "templates.0.x",
      ],
    ],
    taken: { fields: ["name"], detail: "Another incident type has this name" },
    refer: async (db, incidentTypeId) => {
      const teamId = await insertRow(db, schema.team, { name: `Of type ${incidentTypeId}` });
      await db.insert(schema.teamIncidentType).values({ teamId, incidentTypeId });
      return "a team's incident types";
    },
  },
  {
    path: "/incident_priorities/",
    writers: "admins",
    audit: "incident_priority.deleted",
    fields: (n) => ({
      name: `Priority ${n}`,
      description: "Fast",
      rank: -n,
      reminder_hours: n + 1,
      reporter_commands: n % 2 === 0,
    }),
    optional: ["description", "rank", "reporter_commands"],
    text: "name",
    lines: false,
    searched: false,
    sorts: ["id", "name"],
    filters: ["name"],
    wrong: [
      ...wrongDescription,
      ["no hours", { reminder_hours: 0 }, "reminder_hours"],
      ["more hours than a year has", { reminder_hours: 8761 }, "reminder_hours"],
      ["half an hour", { reminder_hours: 0.5 }, "reminder_hours"],
      ["hours as text", { reminder_hours: "1" }, "reminder_hours"],
      ["a rank above all", { rank: 2 ** 31 }, "rank"],
      ["a rank below all", { rank: -(2 ** 31) - 1 }, "rank"],
      ["half a rank", { rank: 0.5 }, "rank"],
      ["a text for yes", { reporter_commands: "true" }, "reporter_commands"],
    ],
    taken: { fields: ["name"], detail: "Another incident priority has this name" },
    refer: async (db, incidentPriorityId) => {
      const teamId = await insertRow(db, schema.team, { name: `Of priority ${incidentPriorityId}` });
      await db.insert(schema.teamIncidentPriority).values({ teamId, incidentPriorityId });
      return "a team's priorities";
    },
  },
  {
    path: "/terms/",
    writers: "members",
    audit: "term.deleted",
    fields: (n) => ({ text: `data loss ${n}`, discoverable: n % 2 === 0 }),
    optional: ["discoverable"],
    text: "text",
    lines: false,
    searched: true,
    sorts: ["id", "text"],
    filters: ["text"],
    shown: { definition_ids: [], source: null, external_id: null },
    wrong: [
      ["a text for yes", { discoverable: "yes" }, "discoverable"],
      ["a source", { source: "secretly" }, "source"],
      ["definitions, which are written for themselves", { definition_ids: [1] }, "definition_ids"],
    ],
    taken: { fields: ["text"], detail: "Another term has this text" },
    refer: async (db, termId) => {
      const individualId = await insertRow(db, schema.individual, {
        name: "Of a term",
        email: `of-term-${termId}@example.com`,
      });
      await db.insert(schema.individualTerm).values({ individualId, termId });
      return "an individual's terms";
    },
  },
  {
    path: "/definitions/",
    writers: "members",
    audit: "definition.deleted",
    fields: (n) => ({ text: `What it means.\n\nIn ${n} lines`, term_ids: [] }),
    optional: ["term_ids"],
    text: "text",
    lines: true,
    searched: true,
    sorts: ["id"],
    filters: [],
    shown: { source: null, external_id: null },
    wrong: [],
  },
  {
    path: "/applications/",
    writers: "members",
    audit: "application.deleted",
    fields: (n) => ({ name: `App ${n}`, description: "Does", uri: `https://example.com/${n}` }),
    optional: ["description", "uri"],
    text: "name",
    lines: false,
    searched: true,
    sorts: ["id", "name"],
    filters: ["name"],
    shown: { source: null, external_id: null },
    wrong: [
      ...wrongDescription,
      ["a script for a link", { uri: "javascript:secretly()" }, "uri"],
      ["a link with a password", { uri: "https://secretly:b@example.com/" }, "uri"],
      ["a source", { source: "secretly" }, "source"],
    ],
    taken: { fields: ["name"], detail: "Another application has this name" },
  },
]);
