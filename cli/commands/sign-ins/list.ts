import type { Static } from "elysia";
import type { signInView } from "../../../server/sign_in/list.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { printTable } from "../../table.ts";
import { printable, printJson } from "../../text.ts";
import { localTime } from "../../when.ts";

export default defineCommand({
  summary: "List your sign-ins, or everyone's if you are an admin",
  args: {
    user: { type: "string", metavar: "USER", description: "Only sign-ins of this user" },
    ...clientArgs,
  },
  examples: ["svc sign-ins list", "svc sign-ins list --user dana@example.com"],
  notes: [
    "Newest first, without those that have ended: browsers, access tokens of terminals, and certificates. * is the one that this command uses.",
  ],
  async run({ user, json }, io) {
    const { ApiClient } = await import("../../client/api_client.ts");
    const signIns = await ApiClient.within(io, (client) =>
      client.list<Static<typeof signInView>>("/sign_ins/", { user }),
    );
    if (json) return printJson(io, { items: signIns });
    const rows = signIns.map(({ id, user, kind, is_current, is_admin, created_at, expires_at }) => [
      id,
      printable(user),
      is_current ? `${kind} *` : kind,
      is_admin ? "yes" : "no",
      ...[created_at, expires_at].map(localTime),
    ]);
    const columns = [
      // Never cut: `svc sign-ins revoke` takes all of it.
      "ID",
      { header: "User", flexible: true, leaveOut: 4 },
      { header: "Kind", leaveOut: 5 },
      { header: "Admin", leaveOut: 1 },
      { header: "Created", leaveOut: 2 },
      { header: "Expires", leaveOut: 3 },
    ];
    printTable(io, columns, rows);
  },
});
