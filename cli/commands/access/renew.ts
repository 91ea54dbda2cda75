import { AccessClient, type Lease, parseId, targetSeconds, wantedArgs } from "../../access/access.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { jsonText } from "../../text.ts";
import { localTime } from "../../when.ts";

export default defineCommand({
  summary: "Extend access",
  args: {
    id: { type: "positional", metavar: "ID", description: "The id of the lease (svc access leases)" },
    duration: wantedArgs.duration,
    ...clientArgs,
  },
  examples: ["svc access renew 7", "svc access renew 7 --duration 30m"],
  notes: ["The duration starts now. It is limited by the role's maximum and by the approved duration."],
  async run({ id, duration, json }, io) {
    const path = `/access/leases/${parseId(id)}/renew`;
    const body = duration === undefined ? undefined : { duration };
    const lease = await AccessClient.within(io, (client) =>
      client.call<Lease>("POST", path, body, { timeout: targetSeconds }),
    );
    const text = `Renewed ${lease.role} until ${localTime(lease.expires_at)}`;
    io.stdout.write(`${json ? jsonText(lease) : text}\n`);
  },
});
