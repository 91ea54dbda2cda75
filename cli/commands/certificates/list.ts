import { clientArgs } from "../../client/args.ts";
import type { Certificate } from "../../client/certificates.ts";
import { defineCommand } from "../../command.ts";
import { printTable } from "../../table.ts";
import { printable, printJson } from "../../text.ts";
import { localTime } from "../../when.ts";

export default defineCommand({
  summary: "List your client certificates, or everyone's for admins",
  args: {
    all: {
      type: "boolean",
      short: "a",
      description: "Include certificates that have expired or been revoked",
    },
    user: { type: "string", metavar: "USER", description: "Only certificates of this user" },
    ...clientArgs,
  },
  examples: ["svc certificates list", "svc certificates list --all --user dana@example.com"],
  async run({ all, user, json }, io) {
    const { ApiClient } = await import("../../client/api_client.ts");
    const query = { user, valid: all ? undefined : "true" };
    const certificates = await ApiClient.within(io, (client) =>
      client.list<Certificate>("/certificates/", query),
    );
    if (json) return printJson(io, { items: certificates });
    const stateOf = (one: Certificate) => {
      if (one.revoked_at !== null) return "Revoked";
      return new Date(one.expires_at) > io.clock.now() ? "Valid" : "Expired";
    };
    const rows = certificates.map((one) => [
      one.serial,
      printable(one.user),
      stateOf(one),
      ...[one.created_at, one.expires_at, one.sign_in_expires_at].map(localTime),
    ]);
    const columns = [
      // Never cut: `svc certificates revoke` takes all of it.
      "Serial",
      { header: "User", flexible: true, leaveOut: 4 },
      { header: "State", leaveOut: 5 },
      { header: "Created", leaveOut: 1 },
      { header: "Expires", leaveOut: 3 },
      { header: "Renewable Until", leaveOut: 2 },
    ];
    printTable(io, columns, rows);
  },
});
