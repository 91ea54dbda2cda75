import { expect, test } from "bun:test";
import { inLanes } from "./deliveries.ts";

test("one that takes long holds up no other, and no more run at once than there are lanes", async () => {
  const { promise: long, resolve: end } = Promise.withResolvers<void>();
  const items = [0, 1, 2, 3, 4, 5];
  const done: number[] = [];
  let [running, most] = [0, 0];
  await inLanes(2, items, async (item) => {
    running += 1;
    most = Math.max(most, running);
    if (item === 0) await long;
    else await Promise.resolve();
    if (item === 5) end();
    running -= 1;
    done.push(item);
  });
  expect([done, most]).toEqual([[1, 2, 3, 4, 5, 0], 2]);
});
