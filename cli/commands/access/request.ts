import { AccessClient, wantedArgs } from "../../access/access.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { printJson } from "../../text.ts";
import { localTime } from "../../when.ts";

export default defineCommand({
  summary: "Request access that needs approval",
  args: {
    role: { type: "positional", metavar: "ROLE", description: "The access role" },
    ...wantedArgs,
    ...clientArgs,
    noWait: { type: "boolean", description: "Do not wait for the decision" },
  },
  examples: [
    'svc access request orders-db --incident INC-44 --reason "Find the stuck order"',
    'svc access request orders-db -i INC-44 -r "Nobody answers" --break-glass',
  ],
  notes: [
    "Waits for the decision unless --no-wait is given. Ctrl-C stops waiting but leaves the request pending; to withdraw it, use svc access cancel.",
  ],
  async run({ role, reason, json, noWait, ...wanted }, io) {
    if (reason === undefined) throw new UsageError("--reason is required");
    await AccessClient.within(io, async (client) => {
      const asked = await client.ask(role, { ...wanted, reason });
      if (!json && asked.state === "Pending") io.stderr.write(`Request ${asked.id} is pending.\n`);
      const now = noWait ? asked : await client.decided(asked);
      if (json) printJson(io, now);
      else if (now.state === "Approved")
        io.stdout.write(
          `Approved until ${localTime(now.expires_at)}: svc access run ${now.role} -- COMMAND\n`,
        );
      else io.stdout.write(`${now.id}\n`);
    });
  },
});
