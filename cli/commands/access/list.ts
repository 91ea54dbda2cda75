import { AccessClient, approvalText, durationText, type Role } from "../../access/access.ts";
import type { Whoami } from "../../client/api.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { printTable } from "../../table.ts";
import { printable, printJson } from "../../text.ts";

export default defineCommand({
  summary: "List the access roles that you may request, or all for admins",
  args: clientArgs,
  examples: ["svc access list", "svc access list --json"],
  notes: [
    "Approval names who must approve, and how many if more than one. To an admin, it shows the groups of a role that only others may request. A role without groups can be requested by nobody, one for the group * by everybody.",
  ],
  async run({ json }, io) {
    const { roles, user } = await AccessClient.within(io, async (client) => ({
      roles: await client.list<Role>("/access/roles/"),
      user: await client.call<Whoami>("GET", "/whoami"),
    }));
    if (json) return printJson(io, { items: roles });
    const rows = roles.map((role) => [
      role.slug,
      approvalOf(role, user),
      durationText(role.default_duration),
      durationText(role.max_duration),
      role.incident_required ? "required" : "",
      printable(role.description),
    ]);
    const columns = [
      "Role",
      { header: "Approval", flexible: true, leaveOut: 4 },
      { header: "Default", leaveOut: 2 },
      { header: "Longest", leaveOut: 1 },
      { header: "Incident", leaveOut: 3 },
      { header: "Description", flexible: true },
    ];
    printTable(io, columns, rows);
  },
});

/** Admins see roles, too, that they may not request. */
function approvalOf(role: Role, user: Whoami): string {
  const { disabled, groups } = role;
  if (disabled) return "disabled";
  const mayRequest = groups.some((group) => group === "*" || user.groups.includes(group));
  if (groups.length === 0) return "nobody: no groups";
  return mayRequest ? approvalText(role) : `only for ${groups.map((group) => printable(group)).join(", ")}`;
}
