import { clientArgs } from "../../client/args.ts";
import { localTime } from "../../client/when.ts";
import { defineCommand } from "../../command.ts";
import { jsonText } from "../../text.ts";

export default defineCommand({
  summary: "List your client certificates; admins see those of everybody",
  args: {
    all: { type: "boolean", short: "a", description: "Also those that have expired or been revoked" },
    user: { type: "string", metavar: "USER", description: "Only those of this user" },
    ...clientArgs,
  },
  examples: ["svc certificates list", "svc certificates list --all --user dana@example.com"],
  async run({ all, user, server, json }, io) {
    const [{ listCertificates }, { widthOf }, { table }, { printable }] = await Promise.all([
      import("../../client/certificates.ts"),
      import("../../client/incident_text.ts"),
      import("../../table.ts"),
      import("../../text.ts"),
    ]);
    const certificates = await listCertificates(io, server, { user, valid: all ? undefined : "true" });
    if (json) {
      io.stdout.write(`${jsonText({ items: certificates })}\n`);
      return;
    }
    const when = (text: string) => localTime(new Date(text));
    const stateOf = (one: (typeof certificates)[number]) => {
      if (one.revoked_at !== null) return "Revoked";
      return new Date(one.expires_at) > io.clock.now() ? "Valid" : "Expired";
    };
    const rows = certificates.map((one) => [
      ...[one.serial, printable(one.user), stateOf(one), when(one.created_at), when(one.expires_at)],
      when(one.sign_in_expires_at),
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
    io.stdout.write(table(columns, rows, widthOf(io.stdout)));
  },
});
