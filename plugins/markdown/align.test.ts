import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { align, type KnownTask } from "./align.ts";
import { identify } from "./tasks.ts";

const words = ["rotate", "keys", "disk", "vendor", "alarm", "page", "backup", "queue", "latency", "owner"];
/** Sentences that are all different. */
const sentences = Array.from({ length: 10 }, (_, i) => `${words[i]} ${i}${i}${i}${i} ${words[i]} x${i * 7}`);
const knownOf = (descriptions: readonly string[], more: Partial<KnownTask> = {}): KnownTask[] =>
  descriptions.map((description, i) => ({
    externalId: `id${i}`,
    description,
    status: "Open",
    deleted: false,
    ...more,
  }));
const writtenOf = (descriptions: readonly string[], status: "Open" | "Resolved" = "Open") =>
  descriptions.map((description) => ({ description, status, assignees: [] as string[] }));
const some = fc.shuffledSubarray(sentences, { minLength: 2 });

describe("a task keeps its id", () => {
  test("if its text is unchanged, in any order and with any mark", () => {
    fc.assert(
      fc.property(some, fc.boolean(), (texts, done) => {
        const shuffled = texts.toReversed();
        const ids = align(knownOf(texts), writtenOf(shuffled, done ? "Resolved" : "Open"));
        expect(ids).toEqual(shuffled.map((text) => `id${texts.indexOf(text)}`));
      }),
    );
  });

  test("if its line is edited", () => {
    fc.assert(
      fc.property(some, fc.nat(), fc.boolean(), (texts, pick, done) => {
        const at = pick % texts.length;
        const edited = texts.with(at, `${texts[at]!.slice(0, -3)} today`);
        const ids = align(knownOf(texts), writtenOf(edited, done ? "Resolved" : "Open"));
        expect(ids).toEqual(texts.map((_, i) => `id${i}`));
      }),
    );
  });
});

test("only newly deleted tasks are reported as deleted", () => {
  fc.assert(
    fc.property(some, fc.nat(), (texts, pick) => {
      const at = pick % texts.length;
      const tasks = identify(knownOf(texts), writtenOf(texts.toSpliced(at, 1)));
      expect(tasks.filter(({ deleted }) => deleted).map(({ externalId }) => externalId)).toEqual([`id${at}`]);
      expect(tasks.filter(({ deleted }) => !deleted)).toHaveLength(texts.length - 1);
    }),
  );
});

test("each id belongs to one task, for any texts", () => {
  const text = fc.array(fc.constantFrom(...words.slice(0, 3)), { minLength: 1, maxLength: 3 });
  const texts = fc.array(
    text.map((some) => some.join(" ")),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(
      texts,
      texts,
      fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
      (old, now, deleted) => {
        const known = knownOf(old).map((task, i) => ({ ...task, deleted: deleted[i]! }));
        const tasks = identify(known, writtenOf(now));
        const ids = tasks.map(({ externalId }) => externalId);
        expect(new Set(ids).size).toBe(ids.length);
        // Each known task is either there or deleted.
        for (const { externalId } of known.filter(({ deleted }) => !deleted))
          expect(ids).toContain(externalId);
        expect(tasks.filter(({ deleted }) => !deleted).map(({ description }) => description)).toEqual(now);
      },
    ),
  );
});

test("tasks with the same text are told apart by their mark, then by their order", () => {
  const [a, b, c] = knownOf(["Restart", "Restart", "Restart"]);
  const known = [a!, { ...b!, status: "Resolved" }, c!];
  const restart = (status: "Open" | "Resolved") => writtenOf(["Restart"], status);
  expect(align(known, [...restart("Resolved"), ...restart("Open"), ...restart("Open")])).toEqual([
    "id1",
    "id0",
    "id2",
  ]);
  expect(align(known, [...restart("Resolved"), ...restart("Resolved")])).toEqual(["id1", "id0"]);
});

test("a task with little in common is a new one", () => {
  expect(align(knownOf(["Rotate the keys"]), writtenOf(["Call the vendor back"]))).toEqual([undefined]);
});

test("a deleted task comes back only with exactly the same text", () => {
  const gone = knownOf(["Rotate the keys"], { deleted: true });
  expect(align(gone, writtenOf(["Rotate the keys"]))).toEqual(["id0"]);
  expect(align(gone, writtenOf(["Rotate all the keys"]))).toEqual([undefined]);
  expect(identify(gone, [])).toEqual([]);
});

test("the first person named is the owner; a new task has a new id", () => {
  const [task, other] = identify(
    [],
    [
      { description: "a", status: "Open", assignees: ["x@y.z", "b@y.z"] },
      { description: "a", status: "Open", assignees: [] },
    ],
  );
  expect(task).toMatchObject({ owner: "x@y.z", assignees: ["x@y.z", "b@y.z"] });
  expect(other).not.toHaveProperty("owner");
  expect(task!.externalId).not.toBe(other!.externalId);
});

test("only the beginning of long tasks is compared, so 500 of them are fast", () => {
  const [beginning, old, anew] = ["Ask the vendor about it. ".repeat(8), "x".repeat(1000), "y".repeat(1000)];
  expect(align(knownOf([beginning + old]), writtenOf([beginning + anew]))).toEqual(["id0"]);
});
