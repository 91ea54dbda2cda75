import type { Sql } from "../../../drizzle/client.ts";
import { prepareNotes, type StormOptions } from "./schedule_storm.ts";

export const reminderTasks: readonly string[] = [
  "incident-status-report-reminder",
  "incident-task-reminders",
];

/** The number of reminders of each kind, and of their recipients. */
interface ReminderStorm {
  reports: number;
  tasks: number;
  people: number;
  /** How long it takes until all are due. */
  seconds: number;
}

/** Workers that remind, and incidents without a report and tasks that become due one after the other. */
export function remindersDue(wanted: ReminderStorm): StormOptions {
  return {
    program: "reminder_storm_program.ts",
    prepare: async (sql) => {
      await prepareNotes(sql);
      await insertPeople(sql, wanted);
      await insertIncidents(sql, wanted);
      await insertTasks(sql, wanted);
    },
  };
}

/** When the n-th of `count` becomes due, in a different order from their ids. */
const dueOf = ({ seconds }: ReminderStorm, count: number) =>
  `date_trunc('milliseconds', now()) + (n::bigint * 7919 % ${count})::float / ${count} * interval '${seconds} seconds'`;

async function insertPeople(sql: Sql, { people }: ReminderStorm): Promise<void> {
  await sql`
    insert into individual (id, name, email, created_at, updated_at) overriding system value
    select n, 'Person ' || n, 'person-' || n || '@example.com', now(), now() from generate_series(1, ${people}::int) n`;
}

async function insertIncidents(sql: Sql, wanted: ReminderStorm): Promise<void> {
  const { reports, people } = wanted;
  await sql.unsafe(`
    insert into incident_type (id, name, created_at, updated_at) overriding system value values (1, 'Outage', now(), now());
    insert into incident_priority (id, name, reminder_hours, created_at, updated_at) overriding system value
      values (1, 'High', 2, now(), now());
    insert into incident (id, title, description, incident_type_id, incident_priority_id,
                          reported_at, created_at, updated_at) overriding system value
      select n, 'Disk ' || n || ' is full', '', 1, 1, ${dueOf(wanted, reports)} - interval '2 hours', now(), now()
      from generate_series(1, ${reports}) n;
    insert into conversation (incident_id, plugin_slug, created_at) select id, 'channel', now() from incident;
    insert into participant (id, incident_id, individual_id, joined_at) overriding system value
      select id, id, 1 + id % ${people}, now() from incident;
    insert into participant_role (participant_id, incident_id, role, assumed_at)
      select id, incident_id, 'commander', now() from participant`);
}

async function insertTasks(sql: Sql, wanted: ReminderStorm): Promise<void> {
  const { reports, tasks, people } = wanted;
  await sql.unsafe(`
    insert into task (id, incident_id, description, resolve_by, created_at, updated_at) overriding system value
      select n, 1 + n % ${reports}, 'Free disk ' || n, ${dueOf(wanted, tasks)}, now(), now()
      from generate_series(1, ${tasks}) n;
    insert into task_assignee (task_id, individual_id) select id, 1 + id % ${people} from task`);
}

/** Counts the due reminders by how often they are in the outbox: every reminder must be there once. */
export async function countReminders(sql: Sql): Promise<Record<"reports" | "tasks", Record<string, number>>> {
  const reports = await sql<{ id: number; times: number }[]>`
    select i.id, count(d.key)::int as times from incident i
    left join delivery d on d.incident_id = i.id and d.task = ${reminderTasks[0]!} group by i.id`;
  const tasks = await sql<{ id: number; times: number }[]>`
    select t.id, count(m.id)::int as times from task t left join (
      select (regexp_matches(text, '/tasks/(\\d+)$', 'gn'))[1]::int as id from delivery
      where task = ${reminderTasks[1]!}) m on m.id = t.id group by t.id`;
  const counted = (rows: readonly { times: number }[]) => {
    const groups = Map.groupBy(rows, ({ times }) => String(times));
    return Object.fromEntries([...groups].map(([times, { length }]) => [times, length]));
  };
  return { reports: counted(reports), tasks: counted(tasks) };
}
