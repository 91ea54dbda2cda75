import { Conflict } from "../../platform/errors.ts";
import type { Io } from "../io.ts";
import { printable, printJson } from "../text.ts";
import { changeIncident } from "./change.ts";
import { type Incident, IncidentClient, type Status } from "./incident.ts";
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
  finish(io, incident, options.json);
}

/** Prints the new state. */
export function finish(io: Io, incident: Incident, json: boolean | undefined): void {
  io.stderr.write(`${incident.name}: ${printable(incident.title)} (${incident.status})\n`);
  if (json) printJson(io, incident);
}
