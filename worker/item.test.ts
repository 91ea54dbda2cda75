import { expect, test } from "bun:test";
import { DrizzleQueryError } from "drizzle-orm";
import type { Fault } from "../core/schedule/runs.ts";
import { Conflict, Unavailable } from "../platform/errors.ts";
import { recordingLog } from "../tests/support/log.ts";
import { workOnItem } from "./task.ts";

function working(error: unknown, signal = new AbortController().signal) {
  const faults: Fault[] = [];
  const { log, logged } = recordingLog();
  const fault = (item: string, reason: string) => void faults.push({ item, reason });
  const postponed: string[] = [];
  const postpone = (item: string) => void postponed.push(item);
  const work = workOnItem({ log, signal, fault, postpone }, "document 7", () => Promise.reject(error));
  return { work, faults, logged, postponed };
}

test("an item's error is recorded as its fault, in our own words", async () => {
  const said = working(new Unavailable("wiki failed"));
  expect(await said.work).toEqual({ failure: "wiki failed" });
  expect(said.faults).toEqual([{ item: "document 7", reason: "wiki failed" }]);
  const failure = "Unexpected error; see the worker's log";
  const unforeseen = working(new DrizzleQueryError("select $1", ["hunter2"], new TypeError("x is no y")));
  expect(await unforeseen.work).toEqual({ failure });
  expect(unforeseen.logged.join()).toContain("x is no y");
  expect(unforeseen.logged.join()).not.toContain("hunter2");
});

test("a lost or aborted run and an unavailable database end the run", async () => {
  const lost = new Conflict("This worker lost the run");
  await expect(working(lost).work).rejects.toBe(lost);
  const gone = new DrizzleQueryError("select", [], Object.assign(new Error(), { code: "ECONNREFUSED" }));
  await expect(working(gone).work).rejects.toBe(gone);
  const given = working(new Unavailable("wiki failed"), AbortSignal.abort());
  await expect(given.work).rejects.toThrow("wiki failed");
  expect(given.faults).toEqual([]);
});

test("an item that another transaction has locked is postponed", async () => {
  const locked = new DrizzleQueryError("select", [], Object.assign(new Error(), { code: "55P03" }));
  const said = working(locked);
  expect(await said.work).toHaveProperty("failure");
  expect(said).toMatchObject({ faults: [], postponed: ["document 7"] });
});
