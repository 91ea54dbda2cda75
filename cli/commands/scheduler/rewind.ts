import { defineCommand } from "../../command.ts";
import { confirmByName } from "../../confirm.ts";
import { instantText, onSchedule } from "../../scheduler.ts";

export default defineCommand({
  args: { yes: { type: "boolean", short: "y", description: "Do not ask" } },
  examples: ["svc scheduler rewind", "svc scheduler rewind --yes"],
  notes: [
    "For after the database's clock was ahead and has been set back: slots that were run meanwhile would not run again until that time, so the schedule stands still. This deletes the runs of slots to come, and has leases, reminders and deliveries wait no longer than from now.",
    "What was done for a slot to come is done again when it comes: the daily summary of such a day is sent a second time. Correct the database's clock first.",
  ],
  async run({ yes }, io) {
    const { readAhead, rewind } = await import("../../../core/schedule/operate.ts");
    const { now, runs, lastSlot, waits } = await onSchedule(io, readAhead);
    if (runs === 0 && !waits) {
      io.stdout.write(`Nothing lies ahead of the database's time, ${instantText(now)}\n`);
      return;
    }
    const upTo = lastSlot ? `, up to ${instantText(lastSlot)}` : "";
    await confirmByName(
      io,
      `The database's time is ${instantText(now)}. Runs of slots to come: ${runs}${upTo}. They are deleted, and the slots run again.`,
      "rewind",
      yes,
    );
    const deleted = await onSchedule(io, rewind);
    io.stdout.write(`Deleted ${deleted} ${deleted === 1 ? "run" : "runs"} of slots to come\n`);
  },
});
