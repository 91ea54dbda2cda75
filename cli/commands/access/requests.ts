import {
  AccessClient,
  type AccessRequest,
  approvalsText,
  approversText,
  durationText,
} from "../../access/access.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { printTable } from "../../table.ts";
import { printable, printJson } from "../../text.ts";

export default defineCommand({
  summary: "List your access requests and those you can decide on",
  args: {
    state: {
      type: "enum",
      metavar: "STATE",
      description: "Only requests in this state, by default Pending",
      choices: ["Pending", "Approved", "Denied", "Cancelled", "Expired", "all"],
    },
    unreviewed: { type: "boolean", description: "Only break-glass access that nobody has reviewed" },
    ...clientArgs,
  },
  examples: [
    "svc access requests",
    "svc access requests --unreviewed",
    "svc access requests --state all --json",
  ],
  async run({ state, unreviewed, json }, io) {
    const chosen = state ?? (unreviewed ? "all" : "Pending");
    const query = {
      state: chosen === "all" ? undefined : chosen,
      unreviewed: unreviewed ? "true" : undefined,
    };
    const requests = await AccessClient.within(io, (client) =>
      client.list<AccessRequest>("/access/requests/", query),
    );
    if (json) return printJson(io, { items: requests });
    const rows = requests.map((one) => [
      String(one.id),
      one.role,
      printable(one.user),
      one.incident ?? "",
      durationText(one.duration),
      one.break_glass ? `${one.state} (break-glass)` : one.state,
      [approversText(one), one.state === "Pending" && approvalsText(one)].filter(Boolean).join(", "),
      printable(one.reason, 80),
    ]);
    const columns = [
      "Id",
      "Role",
      { header: "User", flexible: true, leaveOut: 5 },
      { header: "Incident", leaveOut: 2 },
      { header: "For", leaveOut: 1 },
      { header: "State", leaveOut: 4 },
      { header: "Approval", flexible: true, leaveOut: 3 },
      { header: "Reason", flexible: true },
    ];
    printTable(io, columns, rows);
  },
});
