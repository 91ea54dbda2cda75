import { expect, test } from "bun:test";
import { bossError } from "./job.ts";

test("what pg-boss tells as an error is one, also where it hands on a copy", () => {
  const error = new Error("no");
  expect(bossError(error)).toBe(error);
  const copy = bossError({ ...error, message: "read-only", code: "25006", queue: "delivery" });
  expect(copy).toBeInstanceOf(Error);
  expect(copy).toMatchObject({ message: "read-only", code: "25006" });
  expect(bossError(undefined)).toBeInstanceOf(Error);
});
