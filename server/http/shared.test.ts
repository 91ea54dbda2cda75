import { expect, test } from "bun:test";
import { shared } from "./shared.ts";

function asker() {
  const asked: PromiseWithResolvers<boolean>[] = [];
  let now = 0;
  const ask = shared(
    () => {
      const question = Promise.withResolvers<boolean>();
      asked.push(question);
      return question.promise;
    },
    { goodFor: 100, isGood: (answer) => answer, now: () => now },
  );
  const later = (milliseconds: number) => {
    now += milliseconds;
  };
  return { ask, asked, later };
}

test("concurrent callers share one answer, however long it takes", async () => {
  const { ask, asked, later } = asker();
  const one = ask();
  later(10_000);
  const other = ask();
  expect(asked).toHaveLength(1);
  asked[0]!.resolve(true);
  expect(await Promise.all([one, other])).toEqual([true, true]);
});

test("a good answer is cached for its time from its arrival, then requested again", async () => {
  const { ask, asked, later } = asker();
  const first = ask();
  later(50);
  asked[0]!.resolve(true);
  await first;
  later(99);
  expect([await ask(), asked.length]).toEqual([true, 1]);
  later(1);
  ask();
  expect(asked).toHaveLength(2);
});

test("neither a bad answer nor a failure is cached", async () => {
  const { ask, asked } = asker();
  const bad = ask();
  asked[0]!.resolve(false);
  expect(await bad).toBe(false);
  const failed = ask();
  asked[1]!.reject(new Error("away"));
  expect(await failed.catch(() => "failed")).toBe("failed");
  ask();
  expect(asked).toHaveLength(3);
});
