import { expect, test } from "bun:test";
import { findTask, periodText } from "./tasks.ts";

test("a period is shown as days and hours:minutes:seconds", () => {
  const shown = [1, 30, 300, 3600, 36_000, 86_400, 90_061, 172_800].map((every) => periodText({ every }));
  expect(shown).toEqual([
    "0:00:01",
    "0:00:30",
    "0:05:00",
    "1:00:00",
    "10:00:00",
    "1 day, 0:00:00",
    "1 day, 1:01:01",
    "2 days, 0:00:00",
  ]);
  expect(periodText({ daily: "18:00:00" })).toBe("1 day, 0:00:00");
});

test("a task is found only by its exact name", () => {
  expect(findTask("term-sync")?.name).toBe("term-sync");
  for (const name of ["Term-sync", "term", "", "constructor"]) expect(findTask(name)).toBeUndefined();
});
