import type { DeliveryState, DeliveryView } from "../../../core/outbox/list.ts";
import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import type { Io } from "../../io.ts";
import { instantText, onSchedule } from "../../scheduler.ts";
import { table } from "../../table.ts";
import { printable } from "../../text.ts";

/** So many are shown, the newest. */
const shown = 200;

export default defineCommand({
  args: {
    state: {
      type: "enum",
      metavar: "STATE",
      choices: ["Queued", "Done", "Dead"],
      description: "Only those in this state (otherwise all but the Done)",
    },
    json: { type: "boolean", description: "Print JSON" },
    resend: { type: "string", metavar: "KEY", description: "Send this dead one again" },
    allDead: { type: "boolean", description: "Send all that are dead again" },
  },
  examples: [
    "svc scheduler deliveries",
    "svc scheduler deliveries --state Dead --json",
    "svc scheduler deliveries --all-dead",
  ],
  notes: [
    `Mail, chat messages and webhooks, the newest ${shown}. One that fails is tried again for about three hours; then, or once it is refused for good, it is Dead and waits for --resend.`,
    "What goes to everyone by mail is one for each recipient, whose key ends with who it is: individual-7, team-3.",
    "What waited in a backup that was restored is Dead, too: it may have been sent since.",
  ],
  async run({ state, json, resend, allDead }, io) {
    if (resend !== undefined && allDead) throw new UsageError("--resend goes without --all-dead");
    if ((resend !== undefined || allDead) && (state || json))
      throw new UsageError("--state and --json go with the list");
    if (resend !== undefined) {
      const { resendDelivery } = await import("../../../core/outbox/resend.ts");
      await onSchedule(io, (context) => resendDelivery(context, resend));
      io.stdout.write(`Queued ${printable(resend)}\n`);
    } else if (allDead) {
      const { resendAllDead } = await import("../../../core/outbox/resend.ts");
      io.stdout.write(`Queued ${await onSchedule(io, resendAllDead)}\n`);
    } else await list(io, state ? [state] : ["Queued", "Dead"], json ?? false);
  },
});

async function list(io: Io, states: DeliveryState[], json: boolean): Promise<void> {
  const { countDeliveries, listDeliveries } = await import("../../../core/outbox/list.ts");
  const { deliveries, counts } = await onSchedule(io, async (context) => ({
    deliveries: await listDeliveries(context, { states, limit: shown }),
    counts: await countDeliveries(context),
  }));
  if (json) {
    io.stdout.write(`${JSON.stringify({ counts, deliveries: deliveries.map(asJson) })}\n`);
    return;
  }
  const rows = deliveries.map(({ key, state, attempts, queuedAt, dueAt, error }) => [
    ...[printable(key), state, String(attempts), instantText(queuedAt), instantText(dueAt)],
    printable(error ?? ""),
  ]);
  io.stdout.write(table(["Key", "State", "Attempts", "Queued", "Next Try", "Last Error"], rows));
  io.stderr.write(`${counts.Queued} queued, ${counts.Dead} dead, ${counts.Done} done\n`);
}

function asJson({
  key,
  state,
  incidentId,
  pluginSlug,
  recipient,
  attempts,
  queuedAt,
  dueAt,
  finishedAt,
  error,
}: DeliveryView) {
  return {
    ...{ key, state, incident_id: incidentId, plugin: pluginSlug, recipient, attempts },
    ...{ queued_at: queuedAt, due_at: dueAt, finished_at: finishedAt, last_error: error },
  };
}
