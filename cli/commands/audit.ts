import type { Static } from "elysia";
import type { auditEntryView } from "../../server/audit/routes.ts";
import { clientArgs } from "../client/args.ts";
import { defineCommand } from "../command.ts";
import { limitArg, limitOf, tellMore } from "../incident/args.ts";
import { printTable } from "../table.ts";
import { printable, printJson } from "../text.ts";
import { localTime, parseUntil, parseWhen } from "../when.ts";

type Entry = Static<typeof auditEntryView>;

export default defineCommand({
  summary: "Show the audit log: who did what",
  args: {
    since: {
      type: "string",
      metavar: "TIME",
      description: "Only entries since then: 2h, 7d, 14:05, 2026-11-20",
    },
    until: { type: "string", metavar: "TIME", description: "Only entries before then; a day is included" },
    actor: {
      type: "string",
      metavar: "USER",
      description: "Only what this user did; also client and system",
    },
    action: { type: "string", metavar: "ACTION", description: "Only this action, such as access.issued" },
    subject: { type: "string", metavar: "ID", description: "Only what was done to this object" },
    ...limitArg("entries", 50),
    ...clientArgs,
  },
  examples: [
    "svc audit --since 7d --action access.issued",
    "svc audit --actor dana@example.com --json | jq '.items[].data'",
  ],
  notes: [
    "Only for admins. Newest first. --json also prints the data of each entry. SVC_AUDIT_RETENTION says how long entries are kept.",
    "On a narrow terminal, ADDRESS and SUBJECT are left out.",
  ],
  async run({ since, until, actor, action, subject, limit: given, json }, io) {
    const limit = limitOf(given);
    const now = io.clock.now();
    const typed = Object.entries({ since, until }).flatMap(([name, text]) => {
      if (text === undefined) return [];
      const parse = name === "until" ? parseUntil : parseWhen;
      return [[name, text, parse(`--${name}`, text, now).toISOString()] as const];
    });
    const times = Object.fromEntries(typed.map(([name, , at]) => [name, at]));
    const { ApiClient } = await import("../client/api_client.ts");
    const found = await ApiClient.within(io, async (client) => {
      // One more than the limit, if there are more.
      const all = await client.list<Entry>("/audit/", { actor, action, subject, ...times }, limit + 1);
      for (const [name, text] of typed) client.checkClock(`--${name}`, text);
      return all;
    });
    const items = found.slice(0, limit);
    if (json) printJson(io, { items });
    else if (items.length === 0) io.stderr.write("No entries found.\n");
    else {
      const rows = items.map((one) => [
        io.stdout.isTTY ? localTime(one.at) : one.at,
        printable(one.actor),
        one.action,
        printable(one.subject ?? ""),
        printable(one.address ?? ""),
      ]);
      const columns = [
        "TIME",
        { header: "ACTOR", flexible: true },
        "ACTION",
        { header: "SUBJECT", flexible: true, leaveOut: 2 },
        { header: "ADDRESS", leaveOut: 1 },
      ];
      printTable(io, columns, rows);
    }
    if (found.length > limit) tellMore(io, limit, "add a filter, such as --since");
  },
});
