import { AccessClient, parseId } from "../../access/access.ts";
import { forgetCredentials } from "../../access/cache.ts";
import { queryText } from "../../client/api_client.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { printJson } from "../../text.ts";
import { localTime } from "../../when.ts";

export default defineCommand({
  summary: "End access before it expires",
  args: {
    id: {
      type: "positional",
      metavar: "ID",
      required: false,
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
  async run({ id, user, role, incident, json }, io) {
    const isFiltered = [user, role, incident].some((one) => one !== undefined);
    if ((id === undefined) !== isFiltered)
      throw new UsageError("specify the id of one lease, or --user, --role or --incident");
    const lease = id === undefined ? undefined : parseId(id);
    type Answer = { ended?: number; accepted_until?: string | null; role?: string; expires_at?: string };
    const { answer, acceptedUntil } = await AccessClient.within(io, async (client) => {
      const name = await client.incidentName(incident);
      const path = lease ?? queryText({ user, role, incident: name });
      const answer = await client.call<Answer>("DELETE", `/access/leases/${path}`);
      // The lease may be of a cached credential. The others are issued again.
      forgetCredentials(io.env, client.session.server.base);
      if (answer.role === undefined) return { answer, acceptedUntil: answer.accepted_until };
      // The role may no longer be visible to the user.
      const ended = await client.role(answer.role).catch(() => undefined);
      return { answer, acceptedUntil: ended?.revocable === "expiry" ? answer.expires_at : undefined };
    });
    if (acceptedUntil) {
      const what = id === undefined ? "some of the credentials" : "the credential";
      io.stderr.write(`svc: ${what} may still be accepted until ${localTime(acceptedUntil)}\n`);
    }
    if (json) printJson(io, answer);
    else if (answer.ended === 0) io.stderr.write("No leases found.\n");
    else if (id === undefined) io.stdout.write(`Ended ${answer.ended}\n`);
    else io.stdout.write(`Ended ${answer.role}\n`);
  },
});
