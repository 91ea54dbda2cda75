import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { type Column, table } from "../table.ts";
import { printable, printJson } from "../text.ts";
import { parseWhen } from "../when.ts";
import { type Incident, IncidentClient, type Named, pickNamed } from "./incident.ts";
import { emailOf, nameOf } from "./people.ts";
import { ageColumn, stylesOf, widthOf } from "./text.ts";

export interface ListOptions {
  status: string;
  mine?: boolean;
  commander?: string;
  type?: string;
  priority?: string;
  search?: string;
  since?: string;
  limit: number;
  server?: string;
  json?: boolean;
}

const mostShown = 1000;

/** As the API filters by them; `all` filters by none. */
const statuses: Record<string, string | undefined> = {
  active: "Active",
  stable: "Stable",
  closed: "Closed",
  open: "Active,Stable",
};

/** `svc incident list` */
export async function listCommand(options: ListOptions, io: Io): Promise<void> {
  const { limit, server, json } = options;
  if (!Number.isInteger(limit) || limit < 1 || limit > mostShown)
    throw new UsageError(`--limit must be 1 to ${mostShown}`);
  const since = options.since === undefined ? undefined : parseWhen("--since", options.since, io.clock.now());
  const found = await IncidentClient.within(io, server, async (client) => {
    const found = await findAll(io, client, options, since);
    if (options.since !== undefined) client.checkClock("--since", options.since);
    return found;
  });
  const items = found.slice(0, limit);
  if (json) return printJson(io, { items });
  if (items.length === 0) io.stderr.write("No incidents found.\n");
  else io.stdout.write(incidentTable(items, io));
  if (found.length > limit) {
    const hint =
      limit < mostShown ? `--limit ${Math.min(limit * 2, mostShown)}` : "add a filter, such as --since";
    io.stderr.write(`There are more: ${hint}\n`);
  }
}

const columns: Column[] = [
  { header: "NAME" },
  { header: "STATUS", leaveOut: 3 },
  { header: "PRIORITY", leaveOut: 2 },
  { header: "TITLE", flexible: true },
  { header: "COMMANDER", flexible: true, leaveOut: 1 },
  { header: "AGE" },
];

/** A line for each incident, as wide as the terminal at most. */
export function incidentTable(incidents: readonly Incident[], io: Io): string {
  const rows = incidents.map((one) => [
    one.name,
    one.status,
    printable(one.incident_priority.name, 80),
    printable(one.title),
    nameOf(one.commander),
    ageColumn(one.reported_at, io),
  ]);
  const text = table(columns, rows, widthOf(io.stdout));
  const styled = stylesOf(io);
  const [header = "", ...lines] = text.split("\n");
  return [styled(header, "bold"), ...lines].join("\n");
}

/** One more than the limit, if there are more. */
async function findAll(io: Io, client: IncidentClient, options: ListOptions, since: Date | undefined) {
  const { mine, commander, type, priority, search, limit } = options;
  const idOf = async (path: string, text: string | undefined, what: string) =>
    text === undefined ? undefined : String(pickNamed(await client.list<Named>(path), text, what).id);
  const [incident_type_id, incident_priority_id, by] = await Promise.all([
    idOf("/incident_types/", type, "type"),
    idOf("/incident_priorities/", priority, "priority"),
    commander === undefined ? undefined : emailOf(io, client, commander),
  ]);
  const query = {
    status: statuses[options.status],
    incident_type_id,
    incident_priority_id,
    commander: by,
    q: search,
    participant: mine ? await client.user() : undefined,
    reported_after: since?.toISOString(),
  };
  return client.list<Incident>("/incidents/", query, limit + 1);
}
