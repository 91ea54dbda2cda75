import { defineCommand } from "../../command.ts";
import { confirmByName } from "../../confirm.ts";
import { instantText, onSchedule } from "../../scheduler.ts";
import { counted } from "../../text.ts";

export default defineCommand({
  summary: "Recover after the database clock ran ahead",
  args: { yes: { type: "boolean", short: "y", description: "Skip the confirmation" } },
  examples: ["svc scheduler rewind", "svc scheduler rewind --yes"],
  notes: [
    "Use it after the clock of the database ran ahead and was set back: the schedule stops, because slots in the future have already run. This deletes the runs of future slots, and makes leases, reminders and deliveries due from now.",
    "Future slots run again when they are due, so a daily summary can be sent twice. Correct the clock of the database first.",
  ],
  async run({ yes }, io) {
    const { readAhead, rewind } = await import("../../../core/schedule/operate.ts");
    const { now, runs, lastSlot, waits } = await onSchedule(io, readAhead);
    if (runs === 0 && !waits) {
      io.stdout.write(`Nothing to do: no run is ahead of the database's time, ${instantText(now)}\n`);
      return;
    }
    const upTo = lastSlot ? `, up to ${instantText(lastSlot)}` : "";
    await confirmByName(
      io,
      `The database's time is ${instantText(now)}. This deletes ${counted(runs, "run")} of future slots${upTo}, which will run again.`,
      "rewind",
      yes,
    );
    const deleted = await onSchedule(io, rewind);
    io.stdout.write(`Deleted ${counted(deleted, "run")} of future slots\n`);
  },
});
