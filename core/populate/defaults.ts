import type {
  costFormula,
  costFormulaRole,
  incidentPriority,
  incidentType,
} from "../../drizzle/schema/index.ts";

type Values<T extends { $inferInsert: object }> = Omit<T["$inferInsert"], "createdAt" | "updatedAt">;

/** Nobody is on call for these until an operator configures it: the reporter commands. */
export const incidentTypes: Values<typeof incidentType>[] = [
  { name: "Availability", description: "Something that people rely on is down or slow", visibility: "Open" },
  { name: "Data Loss", description: "Data was lost, damaged or cannot be read", visibility: "Open" },
  {
    name: "Security",
    description: "Somebody gained, or may have gained, unauthorized access",
    visibility: "Restricted",
  },
  {
    name: "Vulnerability",
    description: "A weakness that is not known to have been exploited",
    visibility: "Restricted",
  },
  { name: "Simulation", description: "An exercise: nothing is broken", visibility: "Open" },
  { name: "Other", description: "Anything that fits no other type", visibility: "Open" },
];

/** Hours between two reminders to report: docs/worker.md, incident-status-report-reminder. */
export const incidentPriorities: Values<typeof incidentPriority>[] = [
  {
    name: "Info",
    description: "For information, with nothing to do at once; the reporter commands",
    rank: 0,
    reminderHours: 24,
    reporterCommands: true,
  },
  { name: "Low", description: "Few are affected, and there is a workaround", rank: 1, reminderHours: 12 },
  { name: "Medium", description: "Many are affected, or there is no workaround", rank: 2, reminderHours: 6 },
  { name: "High", description: "Everything else can wait", rank: 3, reminderHours: 2 },
];

/** docs/schedule.md, "Costs". */
export const formula: Values<typeof costFormula> = {
  version: 1,
  yearlyCost: 650_000,
  yearlyHours: 2080,
  dailyHours: 8,
  reviewHours: 1,
  reviewHoursPerParticipant: 0.5,
};

/** The weight of an hour: docs/schedule.md, "Costs". */
export const multipliers: Omit<typeof costFormulaRole.$inferInsert, "formulaVersion">[] = [
  { role: "commander", multiplier: 1 },
  { role: "scribe", multiplier: 0.75 },
  { role: "liaison", multiplier: 0.75 },
  { role: "participant", multiplier: 0.5 },
  { role: "reporter", multiplier: 0.5 },
  { role: "observer", multiplier: 0 },
];
