import { AccessClient } from "../../access/access.ts";
import { serverArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Delete an access role that was never used",
  args: {
    role: { type: "positional", metavar: "ROLE", description: "The access role" },
    ...serverArgs,
  },
  examples: ["svc access delete orders-db"],
  notes: [
    "For admins. A role that was used cannot be deleted, because its requests and leases stay on record. Disable it instead, with disabled: true in svc access apply.",
  ],
  async run({ role }, io) {
    await AccessClient.within(io, async (client) => {
      const { slug } = await client.role(role);
      await client.call("DELETE", `/access/roles/${slug}`);
      io.stdout.write(`Deleted ${slug}\n`);
    });
  },
});
