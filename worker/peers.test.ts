import { expect, test } from "bun:test";
import fc from "fast-check";
import { daily, everySeconds } from "../tests/support/domain/schedule.ts";
import { WorkerPeers } from "./worker.ts";

const config = { timezone: "Europe/Berlin" };
const task = everySeconds("hourly", 3600);
const slot = (hour: number) => new Date(Date.UTC(2026, 11, 1) + hour * 3_600_000);
const peersOf = (workers: string[]) => {
  const peers = new WorkerPeers();
  peers.setPeers(workers);
  return peers;
};
/** How many milliseconds each worker waits. */
const waits = (workers: string[], at: Date, definition = task) =>
  workers.map((owner) => peersOf(workers).inTurn({ owner, config }, definition, at).getTime() - at.getTime());

test("for each slot, one worker starts at once and the others at 10 ms intervals", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 9 }),
      fc.nat(100_000),
      (workers, hour) => {
        const sorted = waits(workers, slot(hour)).toSorted((a, b) => a - b);
        expect(sorted).toEqual(workers.map((_, nth) => nth * 10));
      },
    ),
  );
});

test("each worker is first for its share of the slots, and of the tasks due at the same time", () => {
  const workers = ["a", "b", "c"];
  const count = 3000;
  const shares = (first: (nth: number) => number[]) => {
    const firsts = Array.from({ length: count }, (_, nth) => first(nth).indexOf(0));
    return workers.map((_, at) => firsts.filter((one) => one === at).length);
  };
  for (const share of [
    ...shares((nth) => waits(workers, slot(nth))),
    ...shares((nth) => waits(workers, slot(0), everySeconds(`task-${nth}`, 3600))),
  ])
    expect(share).toBeWithin(800, 1200);
});

test("a worker without known peers, or missing from the list, keeps its own place", () => {
  expect(new WorkerPeers().inTurn({ owner: "a", config }, task, slot(1))).toEqual(slot(1));
  const place = (owner: string) => peersOf(["b", "c"]).inTurn({ owner, config }, task, slot(1));
  expect(
    ["b", "c", "a"].map((owner) => place(owner).getTime() - slot(1).getTime()).every((wait) => wait <= 20),
  ).toBe(true);
});

test("there is no delay for a time that is not a slot", () => {
  const workers = ["a", "b", "c"];
  const between = new Date(slot(1).getTime() + 1);
  expect(waits(workers, between)).toEqual([0, 0, 0]);
  const midnight = daily("nightly", "00:00:00");
  expect(waits(workers, new Date("2026-12-01T00:00:00Z"), midnight)).toEqual([0, 0, 0]);
  const inBerlin = waits(workers, new Date("2026-11-30T23:00:00Z"), midnight);
  expect(inBerlin.toSorted((a, b) => a - b)).toEqual([0, 10, 20]);
});
