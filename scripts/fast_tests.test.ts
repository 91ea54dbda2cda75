import { expect, test } from "bun:test";
import { join } from "node:path";
import { fastTestsOf } from "./fast_tests.ts";

const root = join(import.meta.dir, "..");

test("a test that needs a database or a process, even through a support file, is not fast", () => {
  const fast = ["platform/text.test.ts", "server/health/readiness.test.ts"];
  const slow = [
    // Through tests/support/http/server.ts, which imports the database.
    "server/health/health.test.ts",
    // Through tests/support/cli/process.ts.
    "cli/commands/server/start.test.ts",
    "scripts/build.test.ts",
  ];
  expect(fastTestsOf([...slow, ...fast], root)).toEqual(fast);
});
