import { Conflict, Unavailable } from "../../../platform/errors.ts";
import { AccessClient, type Lease, targetSeconds } from "../../access/access.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { printTable } from "../../table.ts";
import { printable, printJson } from "../../text.ts";
import { localTime } from "../../when.ts";

export default defineCommand({
  summary: "List your leases, or everyone's for admins",
  args: {
    all: { type: "boolean", short: "a", description: "Include leases that have ended" },
    user: { type: "string", metavar: "USER", description: "Only leases of this user" },
    role: { type: "string", metavar: "ROLE", description: "Only leases of this role" },
    incident: {
      type: "string",
      short: "i",
      metavar: "INCIDENT",
      description: "Only leases for this incident",
    },
    explain: {
      type: "boolean",
      description: "Show what the end of each lease would hand over or drop at its target",
    },
    ...clientArgs,
  },
  examples: [
    "svc access leases",
    "svc access leases --role orders-db --explain",
    "svc access leases --all --incident INC-44",
  ],
  notes: [
    "Revoking: the access has ended, but the target has not confirmed the revocation. svc retries until it does. Last Error shows why the last attempt failed.",
  ],
  async run({ all, user, role, incident, explain, json }, io) {
    const states = all ? [undefined] : ["Issuing", "Active", "Revoking"];
    const explained = new Map<number, string[]>();
    const leases = await AccessClient.within(io, async (client) => {
      const filters = { user, role, incident: await client.incidentName(incident) };
      const found: Lease[] = [];
      for (const state of states)
        found.push(...(await client.list<Lease>("/access/leases/", { ...filters, state })));
      for (const { id, state } of explain ? found : [])
        if (state === "Active" || state === "Revoking") explained.set(id, await explanationOf(client, id));
      return found.sort((a, b) => b.id - a.id);
    });
    const withExplanation = (one: Lease) => ({ ...one, explain: explained.get(one.id) ?? [] });
    if (json) return printJson(io, { items: explain ? leases.map(withExplanation) : leases });
    const rows = leases.map((one) => {
      const next = one.next_attempt_at === null ? "" : localTime(one.next_attempt_at);
      return [
        String(one.id),
        one.role,
        printable(one.user),
        one.incident ?? "",
        one.state,
        localTime(one.expires_at),
        (one.end_reason ?? "").replaceAll("_", " "),
        ...(one.error === null ? ["", ""] : [`${one.attempts}, next ${next}`, printable(one.error)]),
      ];
    });
    const columns = [
      "Id",
      "Role",
      { header: "User", flexible: true, leaveOut: 4 },
      { header: "Incident", leaveOut: 3 },
      "State",
      { header: "Expires", leaveOut: 5 },
      { header: "Ends Because", leaveOut: 1 },
      { header: "Attempts", leaveOut: 2 },
      { header: "Last Error", flexible: true, least: 30 },
    ];
    printTable(io, columns, rows);
    for (const [id, lines] of explained) {
      io.stdout.write(
        `\nWhen lease ${id} ends${lines.length === 0 ? ", nothing is handed over or dropped" : ":"}\n`,
      );
      for (const line of lines) io.stdout.write(`  ${printable(line)}\n`);
    }
  },
});

/** A target that does not answer, or a plugin that cannot tell, does not prevent the list. */
async function explanationOf(client: AccessClient, id: number): Promise<string[]> {
  const path = `/access/leases/${id}/explain`;
  try {
    return (await client.call<{ items: string[] }>("GET", path, undefined, { timeout: targetSeconds })).items;
  } catch (error) {
    if (error instanceof Conflict || error instanceof Unavailable) return [error.detail];
    throw error;
  }
}
