import { scheduledTasks, type TaskName } from "../../core/schedule/tasks.ts";
import type { Work } from "../run.ts";
import type { ScheduledTask } from "../task.ts";
import { applicationSync } from "./application-sync.ts";
import { calculateIncidentCost } from "./calculate-incident-cost.ts";
import { documentTermSync } from "./document-term-sync.ts";
import { incidentDailySummary } from "./incident-daily-summary.ts";
import { incidentStatusReportReminder } from "./incident-status-report-reminder.ts";
import { incidentTaskReminders } from "./incident-task-reminders.ts";
import { incidentTaskSync } from "./incident-task-sync.ts";
import { termSync } from "./term-sync.ts";

/** The implementation of each scheduled task. */
const tasks: Record<TaskName, ScheduledTask> = {
  "incident-status-report-reminder": incidentStatusReportReminder,
  "incident-daily-summary": incidentDailySummary,
  "calculate-incident-cost": calculateIncidentCost,
  "incident-task-reminders": incidentTaskReminders,
  "incident-task-sync": incidentTaskSync,
  "term-sync": termSync,
  "document-term-sync": documentTermSync,
  "application-sync": applicationSync,
};

/** Returns the tasks a worker runs: all, or the named one. */
export function worksOf(name?: TaskName): Work[] {
  return scheduledTasks
    .filter((definition) => name === undefined || definition.name === name)
    .map((definition) => ({ definition, task: tasks[definition.name] }));
}
