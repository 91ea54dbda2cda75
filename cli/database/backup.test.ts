import { expect, test } from "bun:test";
import { fakeTerminal, testIo } from "../../tests/support/cli/io.ts";
import { backupText, progressLine, progressText, sizeText } from "./backup.ts";

test("formats sizes with three digits", () => {
  const sizes = [0, 999, 1000, 12_345, 99_949, 99_950, 999_499, 999_500, 12_345_678, 5e12, 7e15];
  expect(sizes.map(sizeText)).toEqual([
    "0 bytes",
    "999 bytes",
    "1.0 kB",
    "12.3 kB",
    "99.9 kB",
    "100 kB",
    "999 kB",
    "1.0 MB",
    "12.3 MB",
    "5.0 TB",
    "7000 TB",
  ]);
});

test("describes the backup in one line", () => {
  const backup = { bytes: 12_345_678, tables: 41, rows: 12_345, heads: ["X"] };
  expect(backupText(backup)).toBe("svc-backup.dump (12.3 MB, 41 tables, 12,345 rows, revision X)");
  expect(backupText({ ...backup, tables: 1, rows: 1_234_567, heads: [] })).toEndWith(
    "1 table, 1,234,567 rows, no revision)",
  );
});

test("formats the progress", () => {
  expect(progressText({ doing: "checking" })).toBe("Checking");
  expect(progressText({ doing: "dumping", table: "incident", bytes: 1_500_000 })).toBe(
    "Dumping incident: 1.5 MB",
  );
  expect(progressText({ doing: "restoring", table: "a", bytes: 50, of: 200 })).toBe(
    "Restoring a: 50 bytes of 200 bytes (25 %)",
  );
});

test("prints only notices without a terminal", () => {
  const io = testIo();
  const { progress, notice, clear } = progressLine(io);
  progress({ doing: "dumping" });
  notice("waiting");
  clear();
  expect(io.out).toEqual({ stdout: "", stderr: "svc: waiting\n" });
});

test("prints one line on a terminal, without wrapping or colour, and clears it", () => {
  const terminal = fakeTerminal();
  const { progress, clear } = progressLine(
    testIo({ stderr: terminal, env: { TERM: "xterm", NO_COLOR: "1" } }),
  );
  progress({ doing: "dumping", table: "t".repeat(200) });
  progress({ doing: "dumping", table: "too soon" });
  progress({ doing: "checking" });
  clear();
  expect(terminal.shown).toEqual([`\r\x1b[KDumping ${"t".repeat(70)}…`, "\r\x1b[KChecking", "\r\x1b[K"]);
});
