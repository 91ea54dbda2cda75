import { expect, test } from "bun:test";
import { fakeTerminal, NOW, testIo } from "../tests/support/cli/io.ts";
import { startProgress, timeLeft } from "./progress.ts";
import { canDraw } from "./screen.ts";

test("a spinner needs a terminal that has a width and can move its cursor", () => {
  const output = (isTTY: boolean, columns?: number) => ({ isTTY, columns, write: () => {} });
  expect(canDraw(output(true, 80), { TERM: "xterm" })).toBeTrue();
  expect(canDraw(output(false, 80), {})).toBeFalse();
  expect(canDraw(output(true, 0), {})).toBeFalse();
  expect(canDraw(output(true), {})).toBeFalse();
  expect(canDraw(output(true, 80), { TERM: "dumb" })).toBeFalse();
  expect(canDraw({ write: () => {} }, {})).toBeFalse();
});

test("prints a plain line on stderr without a suitable terminal", async () => {
  const io = testIo();
  const progress = await startProgress(io, "Waiting", new Date(NOW.getTime() + 90_000));
  progress.note("A \x1b[1mnote");
  progress.stop();
  expect(io.out).toEqual({ stdout: "", stderr: "Waiting, 1:30 left.\nA \uFFFD[1mnote\n" });
});

test("shows a spinner on a terminal, then clears its line and restores the cursor", async () => {
  const terminal = fakeTerminal();
  const io = testIo({ stderr: terminal, env: { TERM: "xterm" } });
  const progress = await startProgress(io, "Waiting", new Date(NOW.getTime() + 90_000));
  expect(terminal.shown).toContain("<hide cursor>");
  expect(terminal.shown.join("")).toContain(" Waiting, 1:30 left");
  terminal.shown.length = 0;
  progress.stop();
  expect(terminal.shown).toEqual(["<start of line>", "<clear line>", "<show cursor>"]);
});

test("clears all rows after the terminal became narrower", async () => {
  const terminal = fakeTerminal();
  const io = testIo({ stderr: terminal, env: { TERM: "xterm" } });
  const progress = await startProgress(io, "Waiting", new Date(NOW.getTime() + 90_000));
  terminal.shown.length = 0;
  // The line of 20 characters has three rows of 7 now.
  terminal.columns = 7;
  progress.stop();
  const up = "\r\x1b[0K\x1b[1A";
  expect(terminal.shown).toEqual([up + up, "<start of line>", "<clear line>", "<show cursor>"]);
});

test("formats the remaining time", () => {
  expect([14_400_000, 3_599_001, 3_909_000].map(timeLeft)).toEqual(["4:00:00", "1:00:00", "1:05:09"]);
  expect([120_000, 119_001, 61_000, 9500, 1, 0, -5000].map(timeLeft)).toEqual([
    "2:00",
    "2:00",
    "1:01",
    "0:10",
    "0:01",
    "0:00",
    "0:00",
  ]);
});
