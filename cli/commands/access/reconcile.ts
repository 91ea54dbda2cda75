import { AccessClient, targetSeconds } from "../../access/access.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { ExitCode } from "../../errors.ts";
import { printTable } from "../../table.ts";
import { printable, printJson } from "../../text.ts";

/** The server accepts no more. */
const namesPerRequest = 5000;

export default defineCommand({
  summary: "Compare the leases of an access role with its target, after restoring a backup",
  args: {
    role: { type: "positional", metavar: "ROLE", description: "The access role" },
    revoke: { type: "boolean", description: "Revoke orphaned and missing leases" },
    ...clientArgs,
  },
  examples: ["svc access reconcile orders-db", "svc access reconcile orders-db --revoke"],
  notes: [
    "For admins. Orphan: the credential exists at the target but has no unfinished lease. Missing: the lease is Active but its credential does not exist. Without --revoke, the exit code is 1 if there are differences. Only credentials that this installation issued are compared.",
  ],
  async run({ role, revoke, json }, io) {
    type Differences = { orphans: string[]; missing: string[] };
    const { differences, revoking } = await AccessClient.within(io, async (client) => {
      const { slug } = await client.role(role);
      const path = `/access/roles/${slug}/reconcile`;
      const differences = await client.call<Differences>("GET", path, undefined, { timeout: targetSeconds });
      const names = [...differences.orphans, ...differences.missing];
      const revoking: string[] = [];
      for (let from = 0; revoke && from < names.length; from += namesPerRequest) {
        const some = { names: names.slice(from, from + namesPerRequest) };
        const answer = await client.call<{ revoking: string[] }>("POST", path, some, {
          timeout: targetSeconds,
        });
        revoking.push(...answer.revoking);
      }
      return { differences, revoking };
    });
    const { orphans, missing } = differences;
    const total = orphans.length + missing.length;
    if (json) printJson(io, { ...differences, revoking });
    else if (total === 0) io.stdout.write("No differences\n");
    else {
      const rows = [
        ...orphans.map((name) => ["Orphan", printable(name)]),
        ...missing.map((name) => ["Missing", printable(name)]),
      ];
      printTable(io, ["Difference", "Name"], rows);
      if (revoke) io.stdout.write(`Revoking ${revoking.length}: svc access leases --role ${role}\n`);
      else io.stdout.write(`To revoke them: svc access reconcile ${role} --revoke\n`);
    }
    if (total > 0 && !revoke) throw new ExitCode(1);
  },
});
