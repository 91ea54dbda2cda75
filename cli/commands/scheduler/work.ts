import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { instantText, onSchedule } from "../../scheduler.ts";
import { table } from "../../table.ts";
import { printable } from "../../text.ts";

/** So many are shown, the dead ones first. */
const shown = 200;

export default defineCommand({
  args: {
    kind: {
      type: "enum",
      metavar: "KIND",
      choices: ["delivery", "step"],
      description: "Only work of this kind",
    },
    dead: { type: "boolean", description: "Only what is not tried any more" },
    json: { type: "boolean", description: "Print JSON" },
    retry: { type: "string", metavar: "KEY", description: "Try this one again, with all of its attempts" },
  },
  examples: [
    "svc scheduler work",
    "svc scheduler work --kind step --dead",
    "svc scheduler work --retry INC-7/reported:documents",
  ],
  notes: [
    "Everything that has to happen outside the database and has not happened yet: messages (deliveries), and what follows from a change of an incident (steps: its documents, its conversations, its groups). What fails is tried again for about three hours; then, or once it is refused for good, it is dead and waits for --retry.",
    "svc scheduler deliveries shows more of messages, also those that were sent.",
  ],
  async run({ kind, dead, json, retry }, io) {
    if (retry !== undefined) {
      if (kind || dead || json) throw new UsageError("--retry goes without --kind, --dead and --json");
      const { retryWork } = await import("../../../core/incident/flow/retry.ts");
      await onSchedule(io, (context) => retryWork(context, retry));
      io.stdout.write(`Due now: ${printable(retry)}\n`);
      return;
    }
    const { listWork } = await import("../../../core/outbox/list.ts");
    const work = await onSchedule(io, (context) => listWork(context, { kind, dead, limit: shown }));
    if (json) {
      const all = work.map(({ dueAt, ...one }) => ({ ...one, due_at: dueAt }));
      io.stdout.write(`${JSON.stringify(all)}\n`);
      return;
    }
    const rows = work.map((one) => [
      ...[one.kind, printable(one.key), one.state, String(one.attempts), instantText(one.dueAt)],
      printable(one.error ?? ""),
    ]);
    io.stdout.write(table(["Kind", "Key", "State", "Attempts", "Next Try", "Last Error"], rows));
    const count = work.filter((one) => one.dead).length;
    io.stderr.write(`${work.length - count} waiting, ${count} dead\n`);
  },
});
