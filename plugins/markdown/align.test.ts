import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { align, type KnownTask } from "./align.ts";
import { identify } from "./tasks.ts";

const words = ["rotate", "keys", "disk", "vendor", "alarm", "page", "backup", "queue", "latency", "owner"];
/** Sentences of which no two are alike. */
const sentences = Array.from({ length: 10 }, (_, i) => `${words[i]} ${i}${i}${i}${i} ${words[i]} x${i * 7}`);
const knownOf = (descriptions: readonly string[], more: Partial<KnownTask> = {}): KnownTask[] =>
  descriptions.map((description, i) => ({
    ...{ externalId: `id${i}`, description, status: "Open", deleted: false, ...more },
  }));
const writtenOf = (descriptions: readonly string[], status: "Open" | "Resolved" = "Open") =>
  descriptions.map((description) => ({ description, status, assignees: [] as string[] }));
const some = fc.shuffledSubarray(sentences, { minLength: 2 });

describe("a task stays itself", () => {
  test("when nothing changes, whatever the order and the marks", () => {
    fc.assert(
      fc.property(some, fc.boolean(), (texts, done) => {
        const shuffled = texts.toReversed();
        const ids = align(knownOf(texts), writtenOf(shuffled, done ? "Resolved" : "Open"));
        expect(ids).toEqual(shuffled.map((text) => `id${texts.indexOf(text)}`));
      }),
    );
  });

  test("when a line is written otherwise", () => {
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

test("of those that are deleted, and only of those, it is said", () => {
  fc.assert(
    fc.property(some, fc.nat(), (texts, pick) => {
      const at = pick % texts.length;
      const tasks = identify(knownOf(texts), writtenOf(texts.toSpliced(at, 1)));
      expect(tasks.filter(({ deleted }) => deleted).map(({ externalId }) => externalId)).toEqual([`id${at}`]);
      expect(tasks.filter(({ deleted }) => !deleted)).toHaveLength(texts.length - 1);
    }),
  );
});

test("each id is one task's, whatever the texts are", () => {
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
        // And each known one is there or gone.
        for (const { externalId } of known.filter(({ deleted }) => !deleted))
          expect(ids).toContain(externalId);
        expect(tasks.filter(({ deleted }) => !deleted).map(({ description }) => description)).toEqual(now);
      },
    ),
  );
});

test("tasks of the same words stay apart, by their mark and then by their order", () => {
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

test("what is hardly alike is another", () => {
  expect(align(knownOf(["Rotate the keys"]), writtenOf(["Call the vendor back"]))).toEqual([undefined]);
});

test("one that was gone comes back by its very words alone", () => {
  const gone = knownOf(["Rotate the keys"], { deleted: true });
  expect(align(gone, writtenOf(["Rotate the keys"]))).toEqual(["id0"]);
  expect(align(gone, writtenOf(["Rotate all the keys"]))).toEqual([undefined]);
  expect(identify(gone, [])).toEqual([]);
});

test("the first who is named owns it; a new one has an id of its own", () => {
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

test("of a long one the beginning is compared, and so five hundred of them take no time", () => {
  const [beginning, old, anew] = ["Ask the vendor about it. ".repeat(8), "x".repeat(1000), "y".repeat(1000)];
  expect(align(knownOf([beginning + old]), writtenOf([beginning + anew]))).toEqual(["id0"]);
});
