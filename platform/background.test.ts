import { expect, test } from "bun:test";
import { Background } from "./background.ts";

test("work of which there is any amount begins in turn, so much at once", async () => {
  const background = new Background();
  const ends: (() => void)[] = [];
  const turns = Array.from({ length: 20 }, () =>
    background.addInTurn(() => new Promise((end) => void ends.push(end))),
  );
  // Whatever is to begin has begun by then.
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
  // All of them are free again.
  for (let nth = 0; nth < 20; nth += 1)
    void background.addInTurn(() => new Promise((end) => void ends.push(end)));
  await settle();
  expect(ends).toHaveLength(36);
});

test("when the program stops, what has not begun is told so as well", async () => {
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
