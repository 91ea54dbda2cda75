import { expect, test } from "bun:test";
import { withTimeLimit } from "./time_limit.ts";

test("returns the result in time, or undefined", async () => {
  expect(await withTimeLimit(60_000, Promise.resolve("done"))).toBe("done");
  expect(await withTimeLimit(1, new Promise(() => {}))).toBeUndefined();
  await expect(withTimeLimit(60_000, Promise.reject(new Error("failed")))).rejects.toThrow("failed");
});
