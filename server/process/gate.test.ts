import { expect, test } from "bun:test";
import { awaitQuiet } from "./gate.ts";

test("it is not quiet because this process could not run for a while", async () => {
  let requested = false;
  const happened = () => {
    const before = requested;
    requested = false;
    return before;
  };
  const order: string[] = [];
  const quiet = awaitQuiet(happened, 100, 5000).then(() => order.push("quiet"));
  Bun.sleepSync(200);
  // A request that arrived meanwhile, and is seen after the first step.
  setTimeout(() => {
    requested = true;
    order.push("request");
  }, 30);
  await quiet;
  expect(order).toEqual(["request", "quiet"]);
});

test("it does not wait longer than it may", async () => {
  const began = performance.now();
  await awaitQuiet(() => true, 100, 200);
  expect(performance.now() - began).toBeGreaterThanOrEqual(200);
});
