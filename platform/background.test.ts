import { expect, test } from "bun:test";
import { Background } from "./background.ts";

test("addInTurn limits the amount of concurrent work", async () => {
  const background = new Background();
  const ends: (() => void)[] = [];
  const turns = Array.from({ length: 20 }, () =>
    background.addInTurn(() => new Promise((end) => void ends.push(end))),
  );
  // By then, everything that may start has started.
  const settle = () => Bun.sleep(0);
  await settle();
  expect(ends).toHaveLength(16);
  for (const nth of [5, 0]) {
    ends[nth]!();
    await turns[nth];
  }
  await settle();
  expect(ends).toHaveLength(18);
  for (let nth = 0; nth < 20; nth += 1) {
    ends[nth]!();
    await turns[nth];
  }
  // All slots are free again.
  for (let nth = 0; nth < 20; nth += 1)
    void background.addInTurn(() => new Promise((end) => void ends.push(end)));
  await settle();
  expect(ends).toHaveLength(36);
});

test("stop also starts queued work, which then sees the aborted signal", async () => {
  const background = new Background();
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  background.signal.addEventListener("abort", () => resolve());
  let ended = 0;
  for (let nth = 0; nth < 20; nth += 1)
    void background.addInTurn(async () => {
      if (!background.signal.aborted) await aborted;
      await new Promise((next) => void setImmediate(next));
      ended += 1;
    });
  await background.stop(60_000);
  expect(ended).toBe(20);
});
