import { AccessClient, durationText, type Role } from "../../access/access.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { table } from "../../table.ts";
import { printable, printJson } from "../../text.ts";

export default defineCommand({
  summary: "List the access roles that you may request, or all for admins",
  args: clientArgs,
  examples: ["svc access list", "svc access list --json"],
  async run({ server, json }, io) {
    const roles = await AccessClient.within(io, server, (client) => client.list<Role>("/access/roles/"));
    if (json) return printJson(io, { items: roles });
    const rows = roles.map((role) => [
      role.slug,
      role.disabled ? "disabled" : role.approval,
      durationText(role.default_duration),
      durationText(role.max_duration),
      role.incident_required ? "required" : "",
      printable(role.description),
    ]);
    io.stdout.write(table(["Role", "Approval", "Default", "Longest", "Incident", "Description"], rows));
  },
});
