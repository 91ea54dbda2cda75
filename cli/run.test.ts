import { describe, expect, test } from "bun:test";
import { version } from "../package.json";
import {
  ConfigurationError,
  Forbidden,
  InvalidInput,
  NotFound,
  SvcError,
  TooManyRequests,
  Unauthenticated,
  Unavailable,
} from "../platform/errors.ts";
import { testIo } from "../tests/support/cli/io.ts";
import { defineCommand } from "./command.ts";
import { type Group, isGroup } from "./command_tree.ts";
import { Interrupted, UsageError } from "./errors.ts";
import { run } from "./run.ts";
import { root } from "./tree.ts";

/** A tree of one command, `svc do`, that throws. */
function throwing(error: unknown): Group {
  const command = defineCommand({
    summary: "Do it",
    args: {},
    run: async () => {
      throw error;
    },
  });
  return { summary: "", commands: { do: async () => ({ default: command }) } };
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
    [
      new UsageError("bad word"),
      2,
      "svc: bad word\nUsage: svc do [options]\nRun `svc do --help` for more.\n",
    ],
    [new Interrupted(), 130, ""],
  ];
  for (const [error, code, stderr] of cases) {
    test(`${(error as Error).name}: ${code}`, async () => {
      expect(await runThrowing(error)).toEqual({ code, stdout: "", stderr });
    });
  }
});

describe("with --json an error is one line of JSON", () => {
  const cases: [unknown, number, string, string][] = [
    [new Forbidden("no"), 1, "forbidden", "no"],
    [new Unauthenticated("run svc login"), 4, "unauthenticated", "run svc login"],
    [new ConfigurationError(["A: wrong", "B: wrong"]), 1, "configuration", "A: wrong\nB: wrong"],
    [new UsageError("bad word"), 2, "usage", "bad word"],
    [new Interrupted(), 130, "interrupted", "interrupted"],
    [
      Object.assign(new TypeError("password=hunter2"), { code: "ECONNRESET" }),
      1,
      "internal",
      "unexpected error (TypeError, ECONNRESET); run it again with SVC_DEBUG=1 to see where",
    ] as [unknown, number, string, string],
  ];
  test.each(cases.map((each) => [each[2], each] as const))(
    "%s",
    async (_, [error, exitCode, code, message]) => {
      const command = defineCommand({
        summary: "Do it",
        args: { json: { type: "boolean", description: "Print JSON" } },
        run: () => Promise.reject(error),
      });
      const tree = { summary: "", commands: { do: async () => ({ default: command }) } };
      const io = testIo();
      expect(await run(["do", "--json"], io, tree)).toBe(exitCode);
      const line = JSON.stringify({ error: { code, message, exit_code: exitCode } });
      expect(io.out).toEqual({ stdout: "", stderr: `${line}\n` });
    },
  );

  test("for each command with the option, even if the command line is invalid", async () => {
    const paths = await withJson(root, []);
    expect(paths.length).toBeGreaterThan(15);
    for (const path of [...paths, ["nonsense"]]) {
      const io = testIo();
      expect(await run([...path, "--nonsense", "--json"], io)).toBe(2);
      expect([path, JSON.parse(io.out.stderr).error.code, io.out.stdout]).toEqual([path, "usage", ""]);
    }
  });

  test("but not after `--`, where it is not an option", async () => {
    const io = testIo();
    expect(await run(["whoami", "--", "--json"], io)).toBe(2);
    expect(io.out.stderr).toStartWith("svc: ");
  });
});

/** The paths of all commands with `--json`. */
async function withJson(group: Group, at: string[]): Promise<string[][]> {
  const found = Object.entries(group.commands).map(async ([name, node]) => {
    if (isGroup(node)) return withJson(node, [...at, name]);
    return "json" in (await node()).default.args ? [[...at, name]] : [];
  });
  return (await Promise.all(found)).flat();
}

describe("an unexpected error after a request", () => {
  /** @returns what a command prints that fails with what it makes of an answer */
  async function saidBy(use: (answer: { commander?: { name: string } }) => unknown): Promise<string> {
    const command = defineCommand({
      summary: "Do it",
      args: {},
      run: async (_options, io) => {
        use(await (await io.fetch("https://svc.example/incidents/7", {})).json());
      },
    });
    const tree = { summary: "", commands: { do: async () => ({ default: command }) } };
    const io = testIo({ fetch: async () => Response.json({}) });
    expect(await run(["do"], io, tree)).toBe(1);
    return io.out.stderr;
  }

  test("names the server, which may run another release", async () => {
    expect(await saidBy(({ commander }) => commander!.name)).toBe(
      `svc: unexpected error (TypeError); perhaps https://svc.example runs another release than this svc (${version}); run it again with SVC_DEBUG=1 to see where\n`,
    );
  });

  test("does not if it is one of the system", async () => {
    const full = () => {
      throw Object.assign(new Error("write"), { code: "ENOSPC" });
    };
    expect(await saidBy(full)).toBe(
      "svc: unexpected error (Error, ENOSPC); run it again with SVC_DEBUG=1 to see where\n",
    );
  });
});

describe("every value reaches its command as it was typed", () => {
  const command = defineCommand({
    summary: "Do it",
    args: {
      reason: { type: "string", short: "r", description: "Why" },
      file: { type: "string", short: "F", multiple: true, description: "From where" },
      limit: { type: "number", short: "L", description: "How many" },
      status: { type: "enum", short: "s", choices: ["open", "-1"], description: "Which" },
      dryRun: { type: "boolean", short: "n", description: "Only say it" },
      editor: { type: "boolean", short: "e", description: "Write it" },
      words: { type: "positional", required: false, multiple: true },
    },
    run: async (options, io, rest) => void io.stdout.write(JSON.stringify({ ...options, rest })),
  });
  const tree = { summary: "", commands: { do: async () => ({ default: command }) } };
  const given = async (words: string[]) => {
    const io = testIo();
    expect([await run(["do", ...words], io, tree), io.out.stderr]).toEqual([0, ""]);
    const { rest, ...options } = JSON.parse(io.out.stdout);
    return rest.length > 0 ? { ...options, rest } : options;
  };

  test.each<[string[], object]>([
    [["kill", "-9", "42"], { words: ["kill", "-9", "42"] }],
    [["-9"], { words: ["-9"] }],
    [["-1:head", "\u22125"], { words: ["-1:head", "\u22125"] }],
    [["-e", "-9"], { editor: true, words: ["-9"] }],
    [["-r", "-40", "--limit", "-5"], { reason: "-40", limit: -5 }],
    [["--reason=-40", "-s", "-1"], { reason: "-40", status: "-1" }],
    [["--reason", "\u22125"], { reason: "\u22125" }],
    [["-F", "-1", "--file", "-2"], { file: ["-1", "-2"] }],
    [["-F", "-", "-"], { file: ["-"], words: ["-"] }],
  ])("numbers: %j", async (words, options) => expect(await given(words)).toEqual(options));

  test.each<[string[], object]>([
    [["-L3"], { limit: 3 }],
    [["-L-3"], { limit: -3 }],
    [["-F/etc/hostname", "-sopen"], { file: ["/etc/hostname"], status: "open" }],
    [["-r=https://wiki.example/7?a=b"], { reason: "https://wiki.example/7?a=b" }],
    [["-r-1:", "word"], { reason: "-1:", words: ["word"] }],
    [["-rtwo words"], { reason: "two words" }],
    [["-ne"], { dryRun: true, editor: true }],
    [["-neL3"], { dryRun: true, editor: true, limit: 3 }],
    [["-nr", "why"], { dryRun: true, reason: "why" }],
  ])("values that follow a short option immediately: %j", async (words, options) =>
    expect(await given(words)).toEqual(options),
  );

  test.each([
    [["-L"], "--limit needs a value"],
    [["--limit", "-n"], "--limit needs a value"],
    [["-L="], "--limit needs a value"],
    [["-Lx"], "--limit must be a number, not x"],
    [["--limit", "-5:"], "--limit must be a number, not -5:"],
    [["-nx3"], "unknown option: -x"],
    [["-n=3"], "--dry-run takes no value"],
  ])("errors: %j", async (words, fault) => {
    const io = testIo();
    expect(await run(["do", ...words], io, tree)).toBe(2);
    expect(io.out.stderr).toStartWith(`svc: ${fault}\n`);
  });

  test("errors about words", async () => {
    for (const [words, fault] of [
      [["-1"], "unknown command: -1"],
      [["incident", "-1"], "unknown command: -1"],
      [["login", "alice", "-1"], "unexpected argument: -1"],
      [["server", "start", "-1"], 'APP: "-1" is not <module>:<attribute>'],
      [["incident", "list", "--limit", "-5"], "--limit must be 1 to 1000"],
    ] as const) {
      const io = testIo();
      expect([await run(words, io), io.out.stderr]).toEqual([2, expect.stringContaining(`svc: ${fault}\n`)]);
    }
  });
});

test("an unknown error is one line, without its message", async () => {
  const error = Object.assign(new TypeError("password=hunter2"), { code: "ECONNRESET" });
  expect(await runThrowing(error)).toEqual({
    code: 1,
    stdout: "",
    stderr: "svc: unexpected error (TypeError, ECONNRESET); run it again with SVC_DEBUG=1 to see where\n",
  });
  expect((await runThrowing("a string")).stderr).toStartWith("svc: unexpected error (string);");
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
