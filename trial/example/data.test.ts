import { describe, expect, test } from "bun:test";
import { getTableName } from "drizzle-orm";
import fc from "fast-check";
import { incidentType } from "../../drizzle/schema/index.ts";
import { type ExampleFiles, exampleTables, readExample, rowsAt, timeAt } from "./data.ts";

const now = new Date("2026-11-20T12:00:00Z");
const files = await readExample();

describe("an offset", () => {
  test.each([
    ["-21d 15:48:15", "2026-10-29T20:11:45.000Z"],
    ["+0d 00:00:01", "2026-11-20T12:00:01.000Z"],
    ["+3d 11:59:59", "2026-11-23T23:59:59.000Z"],
    ["end of day +3d 11:59:59", "2026-11-23T23:59:59.999Z"],
    ["end of day +3d 12:00:00", "2026-11-24T23:59:59.999Z"],
    ["end of day -0d 12:00:01", "2026-11-19T23:59:59.999Z"],
  ])("%s", (offset, time) => {
    expect(timeAt(offset, now).toISOString()).toBe(time);
  });

  test.each([
    "",
    "2026-11-20T12:00:00Z",
    "21d 15:48:15",
    "-21d",
    "-21d 15:48",
    "-21d 25:00:00",
    "-1d 00:00:00 ",
  ])("rejects %p", (offset) => {
    expect(() => timeAt(offset, now)).toThrow(`not an offset such as -21d 15:48:15: ${offset}`);
  });
});

test("offsets in texts are replaced, and a template's {{fields}} stay", () => {
  const texts = rowsAt(files, now).documentContent.map(({ content }) => String(content));
  expect(texts.filter((text) => text.includes("${"))).toEqual([]);
  expect(texts.filter((text) => text.includes("at 2026-11-")).length).toBeGreaterThan(10);
  expect(texts.filter((text) => text.includes("(due 2026-11-")).length).toBeGreaterThan(10);
  expect(texts.filter((text) => text.includes("{{reported_at}}")).length).toBeGreaterThan(0);
});

test("every file in data/ is used once", () => {
  const rows = rowsAt(files, now);
  const ofTables = [...Object.values(exampleTables), incidentType].map(
    (table) => `${getTableName(table)}.jsonl`,
  );
  const texts = (files["document_content.jsonl"] ?? "").matchAll(/"content":"([^"]+)"/g);
  const ofTexts = [...texts].map(([, name]) => `documents/${name}`);
  expect(ofTexts).toHaveLength(rows.documentContent.length);
  expect([...ofTables, ...ofTexts].sort()).toEqual(Object.keys(files).sort());
});

test("a missing file is named", () => {
  const without: ExampleFiles = { ...files, "documents/INC-01.md": undefined as never };
  expect(() => rowsAt(without, now)).toThrow("trial/example/data/documents/INC-01.md is missing");
});

/** All times in it, in order. */
function timesIn(value: unknown): number[] {
  if (value instanceof Date) return [value.getTime()];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(timesIn) : [];
}

test("a column that the table does not have is named", () => {
  const renamed = { ...files, "rotation.jsonl": '{"serviceId":"Data on call","starts":"-1d 00:00:00"}' };
  expect(() => rowsAt(renamed, now)).toThrow("trial/example/data/rotation.jsonl: no column starts");
});

test("a week later, all times are a week later", () => {
  const week = 7 * 24 * 3_600_000;
  const times = timesIn(rowsAt(files, now));
  expect(times.length).toBeGreaterThan(4000);
  expect(timesIn(rowsAt(files, new Date(now.getTime() + week)))).toEqual(times.map((time) => time + week));
});

test("at any time, nothing precedes its cause or lies in the future", () => {
  fc.assert(
    fc.property(
      fc.date({ noInvalidDate: true, min: new Date("2000-01-01"), max: new Date("2100-01-01") }),
      (present) => {
        const { task, incident, participant, ...rest } = rowsAt(files, present);
        const at = (value: unknown) => (value === undefined ? present.getTime() : Number(value));
        // Only due dates lie in the future.
        const past = timesIn([rest, incident, participant, task.map(({ resolveBy, ...row }) => row)]);
        expect(past.reduce((latest, date) => Math.max(latest, date), 0)).toBeLessThanOrEqual(
          present.getTime(),
        );
        for (const { reportedAt, stableAt, closedAt } of incident) {
          expect(at(stableAt)).toBeGreaterThan(at(reportedAt));
          expect(at(closedAt)).toBeGreaterThan(at(stableAt ?? reportedAt));
        }
        for (const { createdAt, updatedAt, resolveBy, resolvedAt } of task) {
          expect(at(resolveBy)).toBeGreaterThan(at(createdAt));
          expect(at(updatedAt)).toBeGreaterThanOrEqual(at(createdAt));
          expect(at(resolvedAt ?? updatedAt)).toBe(at(updatedAt));
        }
        for (const { joinedAt, leftAt } of participant) expect(at(leftAt)).toBeGreaterThan(at(joinedAt));
      },
    ),
    { numRuns: 15 },
  );
});
