import { expect, test } from "bun:test";
import { join } from "node:path";
import { playEvening } from "../support/domain/golden_evening.ts";
import { startGoldenWorker } from "../support/domain/golden_schedule.ts";

const file = join(import.meta.dir, "schedule.txt");

const header = `What the eight tasks of the schedule do on a Friday evening over the example data: their runs in order, what each changes
(+ new, - gone, ~ changed, old => new), whom it tells what; and between them, what people do. Times are those of
Europe/Berlin unless they say otherwise. What differs from this is a change of what people read or rely on: look at the
difference, and when it is meant, record it with

  SVC_WRITE_GOLDEN=1 npm test -- tests/golden
`;

test("an evening of the schedule on the example data matches schedule.txt", async () => {
  await using worker = await startGoldenWorker("2026-11-20T14:47:00Z");
  await playEvening(worker);
  const record = `${header}\n${worker.record()}`;
  if (process.env.SVC_WRITE_GOLDEN) await Bun.write(file, record);
  expect(difference(file, record)).toBe("");
}, 300_000);

/** Formats a difference like `diff`: line numbers, and the lines before and after. */
function difference(recorded: string, now: string): string {
  const command = ["diff", "-U2", "--label", "recorded", "--label", "now", recorded, "-"];
  const { stdout, stderr } = Bun.spawnSync(command, { stdin: Buffer.from(now) });
  return `${stdout}${stderr}`;
}
