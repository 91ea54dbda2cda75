import { Conflict } from "../../platform/errors.ts";
import type { Io } from "../io.ts";
import { counted, printJson } from "../text.ts";
import { changeIncident } from "./change.ts";
import { type Incident, IncidentClient, type Status, type Task } from "./incident.ts";
import { titleOf } from "./text.ts";
import { type IdOptions, idOf } from "./write.ts";

/** `svc incident stable` and `reopen` */
export async function stateCommand(status: Status, options: IdOptions, io: Io): Promise<void> {
  const id = idOf(options);
  const incident = await IncidentClient.within(io, async (client) => {
    const seen = await client.resolve(id);
    if (status === "Stable" && seen.status === "Closed")
      throw new Conflict(`${seen.name} is Closed; to open it again: svc incident reopen ${seen.name}`);
    return seen.status === status ? seen : changeIncident(client, seen, { status });
  });
  await finish(io, incident, options.json);
}

/** Prints the new state, and how many tasks are left. */
export async function finish(io: Io, incident: Incident, json: boolean | undefined): Promise<void> {
  const { id, name, status } = incident;
  io.stderr.write(`${name}: ${titleOf(incident)} (${status})\n`);
  if (status !== "Active") {
    const open = { incident_id: String(id), status: "Open" };
    const tasks = await IncidentClient.within(io, (client) => client.list<Task>("/tasks/", open)).catch(
      () => [],
    );
    if (tasks.length > 0)
      io.stderr.write(`Still open: ${counted(tasks.length, "task")} (svc incident task list ${name})\n`);
  }
  if (json) printJson(io, incident);
}
