import { expect, test } from "bun:test";
import { join } from "node:path";
import { TerminalScreen } from "../tests/support/cli/terminal_screen.ts";
import { filesOf, record, withoutTimes } from "./record.ts";
import { castOf } from "./recording.ts";

test("the recording in docs/ shows what the commands do today", async () => {
  const recording = await record();
  for (const { path, text } of filesOf(recording)) {
    const file = Bun.file(join(import.meta.dir, "..", path));
    expect(file.size).toBeLessThan(40_000);
    expect(withoutTimes(await file.text()), "run: bun scripts/record.ts").toBe(withoutTimes(text));
  }

  const [header, ...events] = castOf(recording)
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(header).toMatchObject({ version: 2, width: recording.columns, height: recording.rows });
  const screen = new TerminalScreen(header.width, header.height);
  let last = 0;
  for (const [at, kind, data] of events) {
    expect(at).toBeGreaterThanOrEqual(last);
    expect(kind).toBe("o");
    screen.write(data);
    last = at;
  }
  expect(last).toBeLessThan(header.duration);
  expect(screen.text).toMatch(/INC-44 is closed\nINC-44 · Closed · Checkout is down/);
  // Nothing of the machine on which it was made.
  expect(screen.text).not.toMatch(/127\.0\.0\.1|\/tmp|\/dev\/shm|eyJ/);
}, 60_000);
