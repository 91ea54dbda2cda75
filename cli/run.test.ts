import { describe, expect, test } from "bun:test";
import {
  ConfigurationError,
  Forbidden,
  InvalidInput,
  NotFound,
  SvcError,
  TooManyRequests,
  Unauthenticated,
  Unavailable,
} from "../core/errors.ts";
import { defineCommand } from "./command.ts";
import { Interrupted, UsageError } from "./errors.ts";
import { run } from "./run.ts";
import { testIo } from "./testing/io.ts";
import type { Group } from "./tree.ts";

/** A tree of one command, `svc do`, that throws. */
function throwing(error: unknown): Group {
  const command = defineCommand({
    args: {},
    run: async () => {
      throw error;
    },
  });
  return { about: "", commands: { do: { about: "Do it", load: async () => ({ default: command }) } } };
}

async function runThrowing(error: unknown, env: Record<string, string> = {}) {
  const io = testIo({ env });
  const code = await run(["do"], io, throwing(error));
  return { code, ...io.out };
}

describe("exit codes", () => {
  const cases: [unknown, number, string][] = [
    [new Forbidden("no"), 1, "svc: no\n"],
    [new NotFound("not there"), 1, "svc: not there\n"],
    [new InvalidInput("user", "bad"), 1, "svc: bad\n"],
    [new Unavailable("down"), 1, "svc: down\n"],
    [new TooManyRequests(7), 1, "svc: Too many requests: try again in 7 s\n"],
    [new SvcError("internal", "broken"), 1, "svc: broken\n"],
    [new Unauthenticated("run svc login"), 4, "svc: run svc login\n"],
    [new ConfigurationError(["A: wrong", "B: wrong"]), 1, "svc: A: wrong\nsvc: B: wrong\n"],
    [new UsageError("bad word"), 2, "svc: bad word\nUsage: svc do [options]\n`svc do --help` tells more.\n"],
    [new Interrupted(), 130, ""],
  ];
  for (const [error, code, stderr] of cases) {
    test(`${(error as Error).name}: ${code}`, async () => {
      expect(await runThrowing(error)).toEqual({ code, stdout: "", stderr });
    });
  }
});

test("an unknown error is one line, without its message", async () => {
  const error = Object.assign(new TypeError("password=hunter2"), { code: "ECONNRESET" });
  expect(await runThrowing(error)).toEqual({
    code: 1,
    stdout: "",
    stderr:
      "svc: something unexpected went wrong (TypeError, ECONNRESET); run it again with SVC_DEBUG=1 to see where\n",
  });
  expect((await runThrowing("a string")).stderr).toStartWith(
    "svc: something unexpected went wrong (string);",
  );
});

test("SVC_DEBUG=1 shows the stack, of a known error too", async () => {
  for (const error of [new TypeError("why"), new Forbidden("why")]) {
    const { stderr } = await runThrowing(error, { SVC_DEBUG: "1" });
    expect(stderr).toContain("run.test.ts:");
  }
});

test("control characters in a message never reach the terminal", async () => {
  const { stderr } = await runThrowing(new Unavailable("\x1b]0;owned\x07 \u202egnp\u009b2J"));
  expect(stderr).toBe("svc: \uFFFD]0;owned\uFFFD \uFFFDgnp\uFFFD2J\n");
});
