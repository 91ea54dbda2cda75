import { queryText } from "../../client/api_client.ts";
import { defineCommand } from "../../command.ts";
import { clientArgs, limitArg, limitOf, tellMore } from "../../incident/args.ts";
import { type Incident, IncidentClient, ifUnknown, type Named, pickNamed } from "../../incident/incident.ts";
import { incidentTable } from "../../incident/incident_table.ts";
import { emailOf } from "../../incident/people.ts";
import { printJson, shellWord } from "../../text.ts";
import { parseWhen } from "../../when.ts";

export default defineCommand({
  summary: "List incidents",
  args: {
    status: {
      type: "enum",
      short: "s",
      metavar: "STATUS",
      default: "open",
      description: "Only incidents in this status",
      choices: ["active", "stable", "closed", "open", "all"],
    },
    mine: { type: "boolean", description: "Only incidents that you take part in" },
    commander: { type: "string", metavar: "USER", description: "Only incidents that USER commands" },
    type: { type: "string", short: "t", metavar: "TYPE", description: "Only incidents of this type" },
    priority: {
      type: "string",
      short: "p",
      metavar: "PRIORITY",
      description: "Only incidents of this priority",
    },
    search: {
      type: "string",
      short: "S",
      metavar: "QUERY",
      description: "Only incidents with these words in title or description",
    },
    since: {
      type: "string",
      metavar: "TIME",
      description: "Only incidents reported since then: 2h, 7d, 14:05, 2026-11-20",
    },
    ...limitArg("incidents"),
    ...clientArgs,
  },
  examples: [
    "svc incident list",
    "svc incident list --mine --status all",
    'svc incident list -s closed -S "disk full" --since 30d',
    "svc incident list --json | jq -r '.items[].name'",
  ],
  notes: [
    "Open incidents are Active or Stable. On a narrow terminal, titles are cut, and COMMANDER and PRIORITY are left out.",
  ],
  async run({ status, mine, commander, type, priority, search, since, limit: given, json }, io) {
    const limit = limitOf(given);
    const after = since === undefined ? undefined : parseWhen("--since", since, io.clock.now());
    let elsewhere = 0;
    const found = await IncidentClient.within(io, async (client) => {
      const idOf = async (path: string, text: string | undefined, what: string) =>
        text === undefined ? undefined : String(pickNamed(await client.list<Named>(path), text, what).id);
      const [incident_type_id, incident_priority_id, by] = await Promise.all([
        idOf("/incident_types/", type, "type"),
        idOf("/incident_priorities/", priority, "priority"),
        commander === undefined ? undefined : emailOf(io, client, commander),
      ]);
      const query = {
        status: statuses[status],
        incident_type_id,
        incident_priority_id,
        commander: by,
        q: search,
        participant: mine ? await client.user() : undefined,
        reported_after: after?.toISOString(),
      };
      // One more than the limit, if there are more.
      const found = await client.list<Incident>("/incidents/", query, limit + 1);
      if (since !== undefined) client.checkClock("--since", since);
      if (search !== undefined) elsewhere = await countElsewhere(client, search, found);
      return found;
    });
    const items = found.slice(0, limit);
    if (json) printJson(io, { items });
    else if (items.length === 0) io.stderr.write("No incidents found.\n");
    else io.stdout.write(incidentTable(items, io));
    if (found.length > limit) tellMore(io, limit, "add a filter, such as --since");
    if (search !== undefined && elsewhere > 0) {
      const others = elsewhere === 1 ? "1 other incident has" : `${elsewhere} other incidents have`;
      const where = "notes, reports, messages, tasks or documents";
      io.stderr.write(`${others} these words in ${where}: svc search ${shellWord(search)}\n`);
    }
  },
});

/** As the API filters by them; `all` filters by none. */
const statuses: Record<string, string | undefined> = {
  active: "Active",
  stable: "Stable",
  closed: "Closed",
  open: "Active,Stable",
};

/** The number of incidents, of any status, whose parts have the words and that were not found by their own text. */
async function countElsewhere(
  client: IncidentClient,
  q: string,
  found: readonly Incident[],
): Promise<number> {
  const query = queryText({ q, type: "note,report,message,task,document", limit: "50" });
  const { items } = await client
    .call<{ items: { incident_id: number | null }[] }>("GET", `/search${query}`)
    .catch(ifUnknown({ items: [] }));
  const known = new Set(found.map(({ id }) => id));
  return new Set(items.flatMap(({ incident_id: id }) => (id === null || known.has(id) ? [] : [id]))).size;
}
