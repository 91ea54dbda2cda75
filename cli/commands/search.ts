import type { Static } from "elysia";
import type { found } from "../../server/search/routes.ts";
import { queryText } from "../client/api_client.ts";
import { defineCommand } from "../command.ts";
import { UsageError } from "../errors.ts";
import { clientArgs, limitArg, limitOf, tellMore } from "../incident/args.ts";
import { type Incident, IncidentClient, ifUnknown } from "../incident/incident.ts";
import { type Column, printTable } from "../table.ts";
import { printable, printJson } from "../text.ts";

type Found = Static<typeof found>;

/** The maximum of the server. */
const mostFound = 50;
/** Requests at a time. */
const parallel = 6;

const columns: Column[] = [
  { header: "TYPE" },
  { header: "ID", leaveOut: 1 },
  { header: "INCIDENT" },
  { header: "TEXT", flexible: true },
];

export default defineCommand({
  summary: "Search incidents, documents, tasks, notes, reports, messages and more",
  args: {
    words: {
      type: "positional",
      required: true,
      multiple: true,
      metavar: "WORD",
      description: 'Words to find: disk "full up" or backup -test (after --)',
    },
    type: {
      type: "string",
      short: "t",
      metavar: "KIND",
      description: "Only these, separated by commas: incident, document, task, note, report, message, ...",
    },
    ...limitArg("results", 20),
    ...clientArgs,
  },
  examples: ["svc search quorum", 'svc search -t note,report "disk full"', "svc search -- disk -test"],
  notes: [
    "The best matches come first. Of each type, the newest 100 are ranked. To filter incidents, use svc incident list -S.",
  ],
  async run({ words, type, limit: given, json }, io) {
    const limit = limitOf(given, mostFound);
    if (words.join("").trim() === "") throw new UsageError("missing argument: WORD");
    const { items, isMore, names } = await IncidentClient.within(io, async (client) => {
      const query = { q: words.join(" "), type, limit: String(Math.min(limit + 1, mostFound)) };
      const { items } = await client.call<{ items: Found[] }>("GET", `/search${queryText(query)}`);
      const shown = items.slice(0, limit);
      const isMore = items.length > limit || items.length === mostFound;
      return { items: shown, isMore, names: json ? new Map() : await namesOf(client, shown) };
    });
    if (json) printJson(io, { items });
    else if (items.length === 0) io.stderr.write("Nothing found.\n");
    else {
      const rows = items.map((one) => [
        one.type.replaceAll("_", " "),
        String(one.id),
        (one.incident_id !== null && names.get(one.incident_id)) || "",
        textOf(one),
      ]);
      printTable(io, columns, rows);
    }
    if (isMore) tellMore(io, limit, "add words, or --type", mostFound);
  },
});

async function namesOf(client: IncidentClient, items: readonly Found[]): Promise<Map<number, string>> {
  const { default: pLimit } = await import("p-limit");
  const names = new Map<number, string>();
  const ids = new Set(items.flatMap(({ incident_id: id }) => id ?? []));
  await pLimit(parallel).map(ids, async (id) => {
    const found = await client.call<Incident>("GET", `/incidents/${id}`).catch(ifUnknown(undefined));
    if (found) names.set(id, found.name);
  });
  return names;
}

/** The title, and what was found if that says more. Titles of what people wrote only repeat the incident. */
function textOf({ type, title, excerpt }: Found): string {
  const words = printable(excerpt.replaceAll(/\s+/g, " ").trim());
  const name = printable(title);
  if (/^(note|report|message)$/.test(type)) return words || name;
  return words === "" || name.includes(words) ? name : `${name}: ${words}`;
}
