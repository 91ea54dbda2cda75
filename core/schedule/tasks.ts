// Vocabulary. A scheduled task is one of those below. A slot is an instant at which a task is due. It depends only
// on the task and the time. A run is the execution of a slot. The worker that inserts its row has claimed it. A lease
// is how long a claim is valid without being renewed. After that, another worker may take the run over as its next
// attempt.

/** When a task is due: every so many seconds since the epoch, or once a day at a time in SVC_TIMEZONE. */
export type Timing = { every: number } | { daily: string };

export interface TaskDefinition {
  name: string;
  timing: Timing;
  /** Whether the schedule's table shows the time of day. */
  showsTime: boolean;
  /** After this many seconds a run is given up. */
  timeoutSeconds: number;
}

/** The fixed schedule: its names and order are part of the user interface. */
export const scheduledTasks = [
  { name: "incident-status-report-reminder", timing: { every: 3600 }, showsTime: false, timeoutSeconds: 600 },
  { name: "incident-daily-summary", timing: { daily: "18:00:00" }, showsTime: true, timeoutSeconds: 1800 },
  { name: "calculate-incident-cost", timing: { every: 300 }, showsTime: false, timeoutSeconds: 240 },
  { name: "incident-task-reminders", timing: { every: 3600 }, showsTime: false, timeoutSeconds: 600 },
  { name: "incident-task-sync", timing: { every: 30 }, showsTime: false, timeoutSeconds: 600 },
  { name: "term-sync", timing: { every: 3600 }, showsTime: false, timeoutSeconds: 1800 },
  { name: "document-term-sync", timing: { daily: "00:00:00" }, showsTime: false, timeoutSeconds: 7200 },
  { name: "application-sync", timing: { every: 3600 }, showsTime: false, timeoutSeconds: 1800 },
] as const satisfies readonly TaskDefinition[];

export type TaskName = (typeof scheduledTasks)[number]["name"];

export const summaryTask = "incident-daily-summary" satisfies TaskName;

export function findTask(name: string): (typeof scheduledTasks)[number] | undefined {
  return scheduledTasks.find((task) => task.name === name);
}

const daySeconds = 24 * 3600;

/** Formats a period for the table: `1:00:00`, `1 day, 0:00:00`. */
export function periodText(timing: Timing): string {
  const seconds = "every" in timing ? timing.every : daySeconds;
  const days = Math.floor(seconds / daySeconds);
  const two = (number: number) => String(number).padStart(2, "0");
  const rest = seconds % daySeconds;
  const time = `${Math.floor(rest / 3600)}:${two(Math.floor(rest / 60) % 60)}:${two(rest % 60)}`;
  return days === 0 ? time : `${days} day${days === 1 ? "" : "s"}, ${time}`;
}

/** Formats the time of day for the table. Undefined for a task that does not show it. */
export function atTimeText({ timing, showsTime }: TaskDefinition): string | undefined {
  return showsTime && "daily" in timing ? timing.daily : undefined;
}
