import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";

export default defineCommand({
  summary: "End access before it expires",
  args: {
    id: {
      ...{ type: "positional", metavar: "ID", required: false },
      description: "The number that svc access leases shows",
    },
    user: { type: "string", metavar: "USER", description: "All access of this user" },
    role: { type: "string", metavar: "ROLE", description: "All access by this role" },
    incident: {
      type: "string",
      short: "i",
      metavar: "INCIDENT",
      description: "All access for this incident",
    },
    ...clientArgs,
  },
  examples: [
    "svc access revoke 7",
    "svc access revoke --user dana@example.com",
    "svc access revoke --incident INC-44",
  ],
  notes: ["Several options together mean what fits all of them. Only admins end the access of others."],
  async run({ id, user, role, incident, server, json }, io) {
    const filters = Object.entries({ user, role, incident }).filter(
      (one): one is [string, string] => one[1] !== undefined,
    );
    if ((id === undefined) === (filters.length === 0))
      throw new UsageError("name one lease, or say which by --user, --role or --incident");
    const { AccessClient, parseId } = await import("../../client/access.ts");
    const path = id === undefined ? `?${new URLSearchParams(filters)}` : parseId(id);
    type Answer = { ended?: number; role?: string };
    const answer = await AccessClient.within(io, server, (client) =>
      client.call<Answer>("DELETE", `/access/leases/${path}`),
    );
    if (json) io.stdout.write(`${JSON.stringify(answer)}\n`);
    else if (id === undefined) io.stdout.write(`Ended ${answer.ended}\n`);
    else io.stdout.write(`Ended ${answer.role}\n`);
  },
});
