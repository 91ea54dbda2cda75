import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { DocumentTask } from "../plugin/methods.ts";
import { type FoundTask, type KnownTask, readTask, taskSteps } from "./task_changes.ts";

const day = (n: number) => new Date(Date.UTC(2026, 11, n));
const ids = fc.constantFrom("1", "2", "3", "4");
const words = {
  externalId: ids as fc.Arbitrary<string>,
  description: fc.constantFrom("one", "two"),
  status: fc.constantFrom("Open" as const, "Resolved" as const, "Cancelled" as const),
  owner: fc.constantFrom(null, "a@example.com"),
  assignees: fc.subarray(["a@example.com", "b@example.com"]),
  deleted: fc.boolean(),
};
const found: fc.Arbitrary<FoundTask[]> = fc.array(
  fc.record({ ...words, creator: fc.constant(null), resolveBy: fc.constantFrom(null, day(1), day(2)) }),
);
const known: fc.Arbitrary<KnownTask[]> = fc.uniqueArray(
  fc.record({ ...words, resolveBy: fc.constantFrom(day(1), day(2)), resolvedAt: fc.constant(null) }),
  { selector: (one) => one.externalId },
);

function apply(before: readonly KnownTask[], steps: ReturnType<typeof taskSteps<KnownTask>>): KnownTask[] {
  const after = new Map(before.map((task) => [task.externalId, task]));
  for (const step of steps) {
    if (step.kind === "create") {
      const { creator, resolveBy, ...task } = step.found;
      after.set(task.externalId, { ...task, resolveBy: resolveBy ?? day(9), resolvedAt: null });
    } else if (step.kind === "delete") after.set(step.known.externalId, { ...step.known, deleted: true });
    else after.set(step.known.externalId, { ...step.known, ...step.next, deleted: false });
  }
  return [...after.values()];
}

describe("our tasks after the steps match the document", () => {
  test("for its last entry of each task; a repetition does nothing, and other tasks stay unchanged", () => {
    fc.assert(
      fc.property(known, found, (before, found) => {
        const after = apply(before, taskSteps(before, found));
        const last = new Map(found.map((task) => [task.externalId, task]));
        for (const { creator, resolveBy, ...task } of last.values()) {
          const ours = after.find(({ externalId }) => externalId === task.externalId);
          if (task.deleted) expect(ours?.deleted ?? true).toBe(true);
          else {
            const { resolvedAt, resolveBy: due, ...words } = ours!;
            expect(words).toEqual(task);
            if (resolveBy) expect(due).toEqual(resolveBy);
          }
        }
        const unspoken = (tasks: readonly KnownTask[]) =>
          tasks.filter(({ externalId }) => !last.has(externalId));
        expect(unspoken(after)).toEqual(unspoken(before));
        expect(taskSteps(after, found)).toEqual([]);
      }),
    );
  });
});

describe("a found task", () => {
  const item: DocumentTask = { externalId: "1", description: "a", status: "Open", assignees: [] };
  const read = (more: Partial<DocumentTask>, timezone = "UTC") =>
    readTask({ ...item, ...more }, { timezone });

  test("names people by their canonical addresses, without duplicates", () => {
    const names = {
      creator: "Rita@example.com",
      owner: "Z@example.com",
      assignees: ["b@x.y", "A@x.y", "a@X.y"],
    };
    expect(read(names)).toMatchObject({
      creator: "rita@example.com",
      owner: "z@example.com",
      assignees: ["a@x.y", "b@x.y"],
    });
  });

  test.each([
    ["2026-12-01", "UTC", "2026-12-01T23:59:59.999Z"],
    ["2026-12-01", "America/New_York", "2026-12-02T04:59:59.999Z"],
    ["2026-03-29", "Europe/Berlin", "2026-03-29T21:59:59.999Z"],
    ["2026-12-01T12:00+02:00", "Europe/Berlin", "2026-12-01T10:00:00.000Z"],
  ])("due %s in %s is due at %s", (resolveBy, zone, at) => {
    expect(read({ resolveBy }, zone).resolveBy?.toISOString()).toBe(at);
  });

  test.each([
    [{ description: " \n" }],
    [{ description: "\ud800" }],
    [{ externalId: "\ud800" }],
    [{ owner: "a b@example.com" }],
    [{ creator: "\u212Aim@example.com" }],
    [{ assignees: ["a@example.com", "a@b@c"] }],
    [{ resolveBy: "2026-02-30" }],
    [{ resolveBy: "0099-12-31" }],
    [{ resolveBy: "2026-12-01T25:00:00Z" }],
  ])("cannot be kept with %p", (more) => expect(() => read(more)).toThrow("The"));

  test("cannot be kept with a day that ends after the last instant", () => {
    const resolveBy = "9999-12-31";
    expect(read({ resolveBy }, "Europe/Berlin").resolveBy).toEqual(new Date("9999-12-31T22:59:59.999Z"));
    expect(() => read({ resolveBy }, "America/New_York")).toThrow("resolve_by");
  });
});
