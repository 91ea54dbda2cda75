import { Type } from "@sinclair/typebox";
import { t } from "elysia";
import { incidentPriorities } from "../../core/catalog/incident_priority.ts";
import type { Deps } from "../deps.ts";
import { description, name } from "./fields.ts";
import { catalogRoutes } from "./routes.ts";

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
export const incidentPriorityRoutes = (deps: Deps) =>
  catalogRoutes(deps, incidentPriorities, {
    path: "incident_priorities",
    parameter: "incident_priority_id",
    written: {
      ...{ name, description, rank },
      ...{ reminder_hours: reminderHours, reporter_commands: reporterCommands },
    },
    defaults: { description: "", rank: 0, reporter_commands: false },
    shown: {
      ...{ name: t.String(), description: t.String(), rank },
      ...{ reminder_hours: Type.Integer(), reporter_commands: reporterCommands },
    },
    fieldsOf: ({ reminder_hours: reminderHours, reporter_commands: reporterCommands, ...body }) => ({
      ...body,
      ...{ reminderHours, reporterCommands },
    }),
    viewOf: ({ name, description, rank, reminderHours, reporterCommands }) => ({
      ...{ name, description, rank },
      ...{ reminder_hours: reminderHours, reporter_commands: reporterCommands },
    }),
  });
