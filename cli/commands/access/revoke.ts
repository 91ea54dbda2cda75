import { clientArgs } from "../../client/args.ts";
import { localTime } from "../../client/when.ts";
import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { jsonText } from "../../text.ts";

export default defineCommand({
  summary: "End access before it expires",
  args: {
    id: {
      ...{ type: "positional", metavar: "ID", required: false },
      description: "The id of the lease (svc access leases)",
    },
    user: { type: "string", metavar: "USER", description: "All leases of this user" },
    role: { type: "string", metavar: "ROLE", description: "All leases of this role" },
    incident: {
      type: "string",
      short: "i",
      metavar: "INCIDENT",
      description: "All leases for this incident",
    },
    ...clientArgs,
  },
  examples: [
    "svc access revoke 7",
    "svc access revoke --user dana@example.com",
    "svc access revoke --incident INC-44",
  ],
  notes: [
    "Several options select the leases that match all of them. Only admins can end other users' access.",
    "Database roles end immediately. Certificates end when servers have fetched the revocation list. Cloud and Kubernetes credentials end when they expire.",
  ],
  async run({ id, user, role, incident, server, json }, io) {
    const filters = Object.entries({ user, role, incident }).filter(
      (one): one is [string, string] => one[1] !== undefined,
    );
    if ((id === undefined) === (filters.length === 0))
      throw new UsageError("specify the id of one lease, or --user, --role or --incident");
    const [{ AccessClient, parseId }, { forgetCredentials }] = await Promise.all([
      import("../../client/access.ts"),
      import("../../client/access_cache.ts"),
    ]);
    const path = id === undefined ? `?${new URLSearchParams(filters)}` : parseId(id);
    type Answer = { ended?: number; accepted_until?: string | null; role?: string; expires_at?: string };
    const { answer, acceptedUntil } = await AccessClient.within(io, server, async (client) => {
      const answer = await client.call<Answer>("DELETE", `/access/leases/${path}`);
      // The lease may be of a cached credential. The others are issued again.
      forgetCredentials(io.env, client.session.server.base);
      if (answer.role === undefined) return { answer, acceptedUntil: answer.accepted_until };
      // The role may no longer be visible to the user.
      const role = await client.role(answer.role).catch(() => undefined);
      return { answer, acceptedUntil: role?.revocable === "expiry" ? answer.expires_at : undefined };
    });
    if (acceptedUntil) {
      const until = localTime(new Date(acceptedUntil));
      const what = id === undefined ? "some of the credentials" : "the credential";
      io.stderr.write(`svc: ${what} may still be accepted until ${until}\n`);
    }
    if (json) io.stdout.write(`${jsonText(answer)}\n`);
    else if (id === undefined) io.stdout.write(`Ended ${answer.ended}\n`);
    else io.stdout.write(`Ended ${answer.role}\n`);
  },
});
