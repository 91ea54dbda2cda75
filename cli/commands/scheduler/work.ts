import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { instantText, onSchedule } from "../../scheduler.ts";
import { printTable } from "../../table.ts";
import { printable, printJson } from "../../text.ts";

/** Rows shown, dead ones first. */
const shown = 200;

export default defineCommand({
  summary: "List pending and dead work, or retry it",
  args: {
    kind: {
      type: "enum",
      metavar: "KIND",
      choices: ["delivery", "step"],
      description: "Show only work of this kind",
    },
    dead: { type: "boolean", description: "Show only dead work" },
    json: { type: "boolean", description: "Print JSON" },
    retry: { type: "string", metavar: "KEY", description: "Retry this work, with all attempts" },
  },
  examples: [
    "svc scheduler work",
    "svc scheduler work --kind step --dead",
    "svc scheduler work --retry INC-7/reported:documents",
  ],
  notes: [
    "Lists work outside the database that is not done yet: messages (deliveries), and the documents, conversations and groups of incidents (steps). Failed work is retried for about three hours. After that, or after a permanent failure, it is dead until you use --retry.",
    "svc scheduler deliveries shows details of messages, including sent ones.",
  ],
  async run({ kind, dead, json, retry }, io) {
    if (retry !== undefined) {
      if (kind || dead || json)
        throw new UsageError("--retry cannot be combined with --kind, --dead or --json");
      const { retryWork } = await import("../../../core/incident/flow/retry.ts");
      await onSchedule(io, (context) => retryWork(context, retry));
      io.stdout.write(`Due now: ${printable(retry)}\n`);
      return;
    }
    const { listWork } = await import("../../../core/outbox/list.ts");
    const work = await onSchedule(io, (context) => listWork(context, { kind, dead, limit: shown }));
    if (json) {
      const all = work.map(({ dueAt, ...one }) => ({ ...one, due_at: dueAt }));
      printJson(io, all);
      return;
    }
    const rows = work.map((one) => [
      one.kind,
      printable(one.key),
      one.state,
      String(one.attempts),
      instantText(one.dueAt),
      printable(one.error ?? ""),
    ]);
    const columns = [
      { header: "Kind", leaveOut: 3 },
      "Key",
      { header: "State", leaveOut: 4 },
      { header: "Attempts", leaveOut: 2 },
      { header: "Next Try", leaveOut: 1 },
      { header: "Last Error", flexible: true, least: 30 },
    ];
    printTable(io, columns, rows);
    const count = work.filter((one) => one.dead).length;
    io.stderr.write(`${work.length - count} pending, ${count} dead\n`);
  },
});
