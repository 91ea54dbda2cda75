import { expect, test } from "bun:test";
import { progressOn } from "./report.ts";

test.each([
  ["in colour on a terminal", true, {}, "\x1b[32m✓\x1b[0m PostgreSQL is ready\n"],
  ["without escape sequences in a pipe", false, {}, "✓ PostgreSQL is ready\n"],
  ["without escape sequences with NO_COLOR", true, { NO_COLOR: "1" }, "✓ PostgreSQL is ready\n"],
  ["without escape sequences on a dumb terminal", true, { TERM: "dumb" }, "✓ PostgreSQL is ready\n"],
])("a step is reported %s", (_where, isTTY, env, line) => {
  let written = "";
  const stderr = {
    isTTY,
    write: (text: string) => {
      written += text;
      return true;
    },
  };
  progressOn({ stderr, env }).done("PostgreSQL is ready");
  expect(written).toBe(line);
});
