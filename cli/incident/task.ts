import { Conflict, NotFound } from "../../platform/errors.ts";
import { ExplainedConflict, UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { type Column, table, widthOf } from "../table.ts";
import { printable, printableLines, printJson } from "../text.ts";
import { parseDue } from "../when.ts";
import { IncidentClient, type IncidentDetail, printIncident, type Task } from "./incident.ts";
import { emailOf, peopleOf } from "./people.ts";
import { postOnce } from "./post_once.ts";
import { putChange } from "./put_change.ts";
import { ageText, atText, inText } from "./text.ts";
import {
  againLine,
  done,
  type IdOptions,
  idOf,
  incidentAndText,
  option,
  sending,
  type TextSource,
  type WordOptions,
  withNext,
  withStdin,
  writtenText,
} from "./write.ts";

type Common = Pick<WordOptions, "incident" | "json">;

const columns: Column[] = [
  { header: "ID" },
  { header: "STATUS", leaveOut: 2 },
  { header: "DESCRIPTION", flexible: true },
  { header: "ASSIGNEES", flexible: true, leaveOut: 1 },
  { header: "DUE" },
];

/** `svc incident task list` */
export async function taskListCommand(
  { all, mine, json, ...named }: IdOptions & { all?: boolean; mine?: boolean },
  io: Io,
): Promise<void> {
  const id = idOf(named);
  const items = await IncidentClient.within(io, async (client) => {
    const incident = await client.resolve(id);
    const query = { incident_id: String(incident.id), status: all ? undefined : "Open" };
    const tasks = await client.list<Task>("/tasks/", query);
    const user = mine ? await client.user() : undefined;
    return tasks.filter((task) => user === undefined || concerns(task, user));
  });
  if (json) printJson(io, { items });
  else if (items.length === 0) io.stderr.write("No tasks found.\n");
  else io.stdout.write(taskTable(items, io));
}

function concerns({ owner, assignees }: Task, user: string): boolean {
  return [owner, ...assignees].some((person) => person?.email === user);
}

/** With their incident instead of their status if they are Open tasks of several. */
export function taskTable(
  tasks: readonly (Task & { incident?: string })[],
  io: Io,
  width = widthOf(io.stdout),
  withIncident = false,
): string {
  const rows = tasks.map((task) => [
    String(task.id),
    withIncident ? (task.incident ?? "") : task.status,
    printableLines(task.description)[0] ?? "",
    peopleOf(task),
    dueText(task, io),
  ]);
  const [id, status, ...others] = columns;
  return table([id!, withIncident ? { header: "INCIDENT" } : status!, ...others], rows, width);
}

/** `in 2h`, `5m late`; RFC 3339 for other programs. */
function dueText({ status, resolve_by, resolved_at }: Task, io: Io): string {
  if (!io.stdout.isTTY) return resolve_by;
  if (status !== "Open") return resolved_at ? `${ageText(new Date(resolved_at), io.clock.now())} ago` : "";
  const [due, now] = [new Date(resolve_by), io.clock.now()];
  return due < now ? `${ageText(due, now)} late` : inText(due, now);
}

interface TaskAddOptions extends WordOptions, Pick<TextSource, "file" | "editor"> {
  owner?: string;
  assign?: string[];
  due?: string;
}

/** `svc incident task add` */
export async function taskAddCommand(options: TaskAddOptions, io: Io): Promise<void> {
  const { owner, assign = [], due, json } = options;
  const { incident: typed, source } = incidentAndText(options, "task add TEXT");
  const description = source.text?.trim();
  if (description === "") throw new UsageError("missing argument: TEXT");
  const resolve_by = due === undefined ? undefined : parseDue("--due", due, io.clock.now()).toISOString();
  const again = (incident = typed) =>
    againLine(io, [
      ...["task", "add", ...option("-i", incident), ...option("--owner", owner)],
      ...assign.flatMap((one) => ["--assign", one]),
      ...option("--due", resolve_by),
    ]);
  const { incident, task } = await withStdin(io, "task", source, again(), async (io) => {
    const { incident, fields } = await IncidentClient.within(io, async (client) => {
      const incident = await client.resolve(typed);
      if (due !== undefined) client.checkClock("--due", due);
      const assignees: string[] = [];
      for (const word of assign) assignees.push(await emailOf(io, client, word));
      const owned = owner === undefined ? undefined : await emailOf(io, client, owner);
      return { incident, fields: { incident_id: incident.id, assignees, resolve_by, owner: owned } };
    });
    if (description !== undefined && source.file === undefined) {
      const body = { ...fields, description };
      const task = await IncidentClient.within(io, (client) =>
        postOnce<Task>(io, client, "task", body, { ...body, resolve_by: due }),
      );
      return { incident, task };
    }
    const written = await writtenText(io, "task", source, incident, again(incident.name));
    const task = await sending(io, "task", written, again(incident.name), () =>
      IncidentClient.within(io, (client) =>
        client.post<Task>("/tasks/", { ...fields, description: written.text }, { key: written.key }),
      ),
    );
    return { incident, task };
  });
  done(io, incident, json, task);
  if (due !== undefined) io.stderr.write(`Due ${atText(new Date(task.resolve_by), io)}\n`);
  if (!json) io.stdout.write(`${task.id}\n`);
}

/** `svc incident task done` and `reopen` */
export async function taskStatusCommand(
  status: "Resolved" | "Open",
  { tasks = [], ...common }: Common & { tasks?: string[] },
  io: Io,
): Promise<void> {
  if (tasks.length === 0) throw new UsageError("missing argument: TASK");
  await changeTasks(tasks, io, common, async () => ({ status }));
}

/** `svc incident task assign` */
export async function taskAssignCommand(
  { words = [], remove, ...common }: Common & { words?: string[]; remove?: boolean },
  io: Io,
): Promise<void> {
  const [task, ...users] = words;
  if (task === undefined) throw new UsageError("missing argument: TASK");
  if (users.length === 0) throw new UsageError("missing argument: USER");
  await changeTasks([task], io, common, async (client, seen) => {
    const emails: string[] = [];
    // In lower case, as the server has them.
    for (const user of users) emails.push((await emailOf(io, client, user)).toLowerCase());
    const before = seen.assignees.map(({ email }) => email);
    const others = before.filter((email) => !emails.includes(email));
    return { assignees: remove ? others : [...others, ...emails] };
  });
}

type TaskFields = Pick<Task, "description" | "resolve_by" | "reminders"> & {
  status: string;
  owner: string | null;
  assignees: string[];
};

async function changeTasks(
  words: readonly string[],
  io: Io,
  { incident: typed, json }: Common,
  changeOf: (client: IncidentClient, seen: Task) => Promise<Partial<TaskFields>>,
): Promise<void> {
  const ids = [...new Set(words.map(parseTaskId))];
  const changed: { incident: IncidentDetail; task: Task }[] = [];
  try {
    await IncidentClient.within(io, async (client) => {
      const seen: Task[] = [];
      const expected = typed === undefined ? undefined : await client.resolve(typed);
      for (const id of ids) seen.push(await getTask(client, id, expected));
      for (const task of seen) {
        const change = await changeOf(client, task);
        const incident = await client.get(String(task.incident_id));
        changed.push({ incident, task: await changeTask(client, task, change) });
      }
    });
  } finally {
    // Includes tasks that were changed before another one failed.
    const incidents = new Map(changed.map(({ incident }) => [incident.id, incident]));
    for (const incident of incidents.values()) printIncident(io, incident);
  }
  if (json) printJson(io, { items: changed.map(({ task }) => task) });
}

/** `12` or `#12`. @throws UsageError */
function parseTaskId(text: string): string {
  const [, id] = /^#?([1-9]\d{0,14})$/.exec(text.trim()) ?? [];
  if (id === undefined)
    throw new UsageError(`"${printable(text, 60)}" is not the number of a task: see svc incident task list`);
  return id;
}

async function getTask(client: IncidentClient, id: string, expected?: IncidentDetail): Promise<Task> {
  let task: Task;
  try {
    task = await client.call<Task>("GET", `/tasks/${id}`);
  } catch (error) {
    if (!(error instanceof NotFound)) throw error;
    throw new NotFound(`there is no task ${id} that you may see: svc incident task list`, { cause: error });
  }
  if (expected !== undefined && task.incident_id !== expected.id)
    throw new NotFound(`${expected.name} has no task ${id}: svc incident task list ${expected.name}`);
  return task;
}

async function changeTask(client: IncidentClient, seen: Task, change: Partial<TaskFields>): Promise<Task> {
  const isDifferent = Object.entries(change).some(
    ([field, value]) => JSON.stringify(fieldsOf(seen)[field as keyof TaskFields]) !== JSON.stringify(value),
  );
  if (!isDifferent) return seen;
  return putChange<Task, TaskFields>(seen, change, {
    fieldsOf,
    put: (body) => client.call("PUT", `/tasks/${seen.id}`, body),
    refetch: () => client.call("GET", `/tasks/${seen.id}`),
    label: (field) => `The field ${field.replace("_", " ")} of task ${seen.id}`,
    shown: (value) => (Array.isArray(value) ? value.join(", ") : String(value ?? "")),
  }).catch((error: unknown) => {
    if (!(error instanceof Conflict) || error instanceof ExplainedConflict) throw error;
    const plain = new Conflict(`task ${seen.id}: ${error.detail}`, { cause: error });
    const isInDocument = seen.external_id !== null && seen.document_id !== null;
    throw withNext(
      plain,
      isInDocument ? `Its document: svc incident doc edit ${seen.document_id}` : undefined,
    );
  });
}

function fieldsOf({ description, status, owner, assignees, resolve_by, reminders }: Task): TaskFields {
  const emails = assignees.map(({ email }) => email);
  return { description, status, owner: owner?.email ?? null, assignees: emails, resolve_by, reminders };
}
