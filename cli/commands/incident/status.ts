import pLimit from "p-limit";
import type { AccessRequest, Lease } from "../../access/access.ts";
import { defineCommand } from "../../command.ts";
import { clientArgs } from "../../incident/args.ts";
import {
  type Incident,
  IncidentClient,
  ifUnknown,
  type Named,
  type StatusReport,
  type Task,
} from "../../incident/incident.ts";
import { taskTable } from "../../incident/task.ts";
import { ageText, stylesOf, titleOf, whenText } from "../../incident/text.ts";
import type { Io } from "../../io.ts";
import { table, widthOf } from "../../table.ts";
import { jsonText, printable } from "../../text.ts";

export default defineCommand({
  summary: "Show what you command, your tasks, what is overdue, and access",
  args: clientArgs,
  examples: ["svc incident status", "svc incident status --json"],
  async run({ json }, io) {
    const status = await IncidentClient.within(io, (client) => readStatus(client, io.clock.now()));
    io.stdout.write(json ? `${jsonText(status)}\n` : statusText(status, io));
  },
});

/** An incident whose commander owes a status report. */
type OverdueReport = Incident & { report_due_at: string };

interface Status {
  /** Open incidents that the user commands. */
  commanding: Incident[];
  /** Open, owned by the user or assigned to them, with the name of their incident; the first due first. */
  tasks: (Task & { incident: string })[];
  overdue_reports: OverdueReport[];
  /** Closed incidents that the user takes part in, and that nobody has written a post-mortem of. */
  postmortems_due: Incident[];
  /** Pending. */
  requests: AccessRequest[];
  leases: Lease[];
}

/** Requests at a time. */
const parallel = 6;

async function readStatus(client: IncidentClient, now: Date): Promise<Status> {
  const user = await client.user();
  const open = { status: "Open" };
  const [commanding, owned, assigned, requests, leases, postmortems_due] = await Promise.all([
    client.list<Incident>("/incidents/", { commander: user, status: "Active,Stable" }),
    client.list<Task>("/tasks/", { ...open, owner: user }),
    client.list<Task>("/tasks/", { ...open, assignee: user }),
    client.list<AccessRequest>("/access/requests/", { state: "Pending" }),
    client.list<Lease>("/access/leases/", { user, state: "Active" }),
    client.list<Incident>("/incidents/", { participant: user, postmortem_due: "true" }),
  ]);
  const tasks = [...new Map([...owned, ...assigned].map((task) => [task.id, task])).values()];
  const names = new Map(commanding.map(({ id, name }) => [id, name]));
  const others = [...new Set(tasks.map(({ incident_id }) => incident_id))].filter((id) => !names.has(id));
  await pLimit(parallel).map(others, async (id) => {
    const found = await client.call<Incident>("GET", `/incidents/${id}`).catch(ifUnknown(undefined));
    names.set(id, found?.name ?? "");
  });
  return {
    commanding,
    tasks: tasks
      .sort((a, b) => a.resolve_by.localeCompare(b.resolve_by))
      .map((task) => ({ ...task, incident: names.get(task.incident_id) ?? "" })),
    overdue_reports: await overdueOf(client, commanding, now),
    postmortems_due,
    // Admins see those of everybody.
    requests: requests.filter((request) => request.user === user),
    leases,
  };
}

/** A report is due as often as the priority says, while the incident is Active. */
async function overdueOf(
  client: IncidentClient,
  commanding: readonly Incident[],
  now: Date,
): Promise<OverdueReport[]> {
  const active = commanding.filter(({ status }) => status === "Active");
  if (active.length === 0) return [];
  const priorities = await client.list<Named & { reminder_hours: number }>("/incident_priorities/");
  const hours = new Map(priorities.map(({ id, reminder_hours }) => [id, reminder_hours]));
  const due: OverdueReport[] = [];
  for (const incident of active) {
    const [last] = await client.list<StatusReport>(`/incidents/${incident.id}/reports/`, {}, 1);
    const since = Date.parse(last?.created_at ?? incident.reported_at);
    const at = new Date(since + (hours.get(incident.incident_priority_id) ?? 24) * 3_600_000);
    if (at <= now) due.push({ ...incident, report_due_at: at.toISOString() });
  }
  return due;
}

const indent = "  ";

function statusText(status: Status, io: Io): string {
  const [styled, now] = [stylesOf(io), io.clock.now()];
  const columns = widthOf(io.stdout);
  const width = columns === undefined ? undefined : columns - indent.length;
  const incidents = status.commanding.map((one) => [
    one.name,
    one.status,
    printable(one.incident_priority.name, 40),
    titleOf(one),
  ]);
  const overdue = status.overdue_reports.map((one) => {
    const at = new Date(one.report_due_at);
    const late = io.stdout.isTTY ? `${ageText(at, now)} late` : one.report_due_at;
    return [one.name, titleOf(one), late];
  });
  const due = status.postmortems_due.map((one) => [one.name, titleOf(one), whenText(one.closed_at!, io)]);
  const accessRow = ({ id, role, incident, expires_at }: AccessRequest | Lease) => [
    String(id),
    role,
    incident ?? "",
    whenText(expires_at, io),
  ];
  const requests = status.requests.map(accessRow);
  const leases = status.leases.map(accessRow);
  const title = { header: "TITLE", flexible: true };
  const priority = { header: "PRIORITY", leaveOut: 1 };
  const access = ["ID", { header: "ROLE", flexible: true }, "INCIDENT", "UNTIL"];
  const parts: [string, string][] = [
    ["You command", incidents.length ? table(["NAME", "STATUS", priority, title], incidents, width) : ""],
    ["Your open tasks", status.tasks.length ? taskTable(status.tasks, io, width, true) : ""],
    ["Overdue reports", overdue.length ? table(["NAME", title, "DUE"], overdue, width) : ""],
    ["Post-mortems to write", due.length ? table(["NAME", title, "CLOSED"], due, width) : ""],
    ["Your requests", requests.length ? table(access, requests, width) : ""],
    ["Your access", leases.length ? table(access, leases, width) : ""],
  ];
  return parts
    .map(([heading, text]) => {
      const indented = text.replace(/^(?=.)/gm, indent);
      return `${styled(heading, "bold")}\n${indented === "" ? `${indent}None\n` : indented}`;
    })
    .join("\n");
}
