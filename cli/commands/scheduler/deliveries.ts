import type { DeliveryState, DeliveryView } from "../../../core/outbox/list.ts";
import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import type { Io } from "../../io.ts";
import { instantText, onSchedule } from "../../scheduler.ts";
import { printTable } from "../../table.ts";
import { printable, printJson } from "../../text.ts";

/** Rows shown, newest first. */
const shown = 200;

export default defineCommand({
  summary: "List pending and dead deliveries, or resend or discard them",
  args: {
    state: {
      type: "enum",
      metavar: "STATE",
      choices: ["Queued", "Done", "Dead", "Obsolete"],
      description: "Show only this state, by default Queued and Dead",
    },
    json: { type: "boolean", description: "Print JSON" },
    resend: { type: "string", metavar: "KEY", description: "Resend this dead delivery" },
    allDead: { type: "boolean", description: "Resend all dead deliveries" },
    discard: { type: "string", metavar: "KEY", description: "Give up this dead delivery" },
    discardAllDead: { type: "boolean", description: "Give up all dead deliveries" },
  },
  examples: [
    "svc scheduler deliveries",
    "svc scheduler deliveries --state Dead --json",
    "svc scheduler deliveries --all-dead",
    "svc scheduler deliveries --discard-all-dead",
  ],
  notes: [
    `Lists mail, chat messages and webhooks, the newest ${shown}. A failed delivery is retried for about three hours. After that, or after a permanent failure, it is Dead until you use --resend or --discard. A discarded delivery is Done, with its last error.`,
    "A reminder or a summary is Obsolete if it was dropped before it was sent, because it was no longer true or a newer one replaced it. The last error says why.",
    "Mail has one delivery for each recipient, and its key ends with the recipient: individual-7, team-3.",
    "Deliveries that were pending in a restored backup are Dead, too, because they may have been sent since.",
  ],
  async run({ state, json, ...changes }, io) {
    const { resend, discard, allDead, discardAllDead } = changes;
    const chosen = Object.values(changes).filter((value) => value !== undefined && value !== false);
    if (chosen.length === 0) return await list(io, state ? [state] : ["Queued", "Dead"], json ?? false);
    if (chosen.length > 1)
      throw new UsageError("--resend, --all-dead, --discard and --discard-all-dead exclude each other");
    if (state || json) throw new UsageError("--state and --json can only be combined with a list");
    const core = await import("../../../core/outbox/resend.ts");
    const say = (text: string) => void io.stdout.write(`${text}\n`);
    if (resend !== undefined) {
      await onSchedule(io, (context) => core.resendDelivery(context, resend));
      say(`Queued ${printable(resend)}`);
    } else if (discard !== undefined) {
      await onSchedule(io, (context) => core.discardDelivery(context, discard));
      say(`Discarded ${printable(discard)}`);
    } else if (allDead) say(`Queued ${await onSchedule(io, core.resendAllDead)}`);
    else if (discardAllDead) say(`Discarded ${await onSchedule(io, core.discardAllDead)}`);
  },
});

async function list(io: Io, states: DeliveryState[], json: boolean): Promise<void> {
  const [{ countDeliveries, listDeliveries }, { toApi }] = await Promise.all([
    import("../../../core/outbox/list.ts"),
    import("../../../platform/names.ts"),
  ]);
  const { deliveries, counts } = await onSchedule(io, async (context) => ({
    deliveries: await listDeliveries(context, { states, limit: shown }),
    counts: await countDeliveries(context, ["Queued", "Done", "Dead", "Obsolete"]),
  }));
  const asJson = ({ pluginSlug: plugin, error: lastError, ...one }: DeliveryView) =>
    toApi({ ...one, plugin, lastError });
  if (json) return printJson(io, { counts, deliveries: deliveries.map(asJson) });
  const rows = deliveries.map(({ key, state, attempts, queuedAt, dueAt, error }) => [
    printable(key),
    state,
    String(attempts),
    instantText(queuedAt),
    instantText(dueAt),
    printable(error ?? ""),
  ]);
  const columns = [
    "Key",
    { header: "State", leaveOut: 4 },
    { header: "Attempts", leaveOut: 2 },
    { header: "Queued", leaveOut: 1 },
    { header: "Next Try", leaveOut: 3 },
    { header: "Last Error", flexible: true, least: 30 },
  ];
  printTable(io, columns, rows);
  const dropped = counts.Obsolete > 0 ? `, ${counts.Obsolete} obsolete` : "";
  io.stderr.write(`${counts.Queued} queued, ${counts.Dead} dead, ${counts.Done} done${dropped}\n`);
}
