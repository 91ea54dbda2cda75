import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestRun, testRunsOf } from "./test_runs.ts";
import { waitingTests } from "./waiting_tests.ts";

const root = join(import.meta.dir, "..");

test("every file that mostly waits exists, and is listed once", () => {
  expect(waitingTests.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  expect(new Set(waitingTests).size).toBe(waitingTests.length);
});

test("no test gives up earlier than others do, because the machine may be busy", () => {
  const own = /^\s*(?:\}, |setDefaultTimeout\()?[1-5]?\d_000(?:\);|,\n *\);)/m;
  const paths = new Bun.Glob(
    "{cli,core,deploy,drizzle,platform,plugins,scripts,server,tests,trial,worker}/**/*.test.ts",
  );
  const early = [...paths.scanSync(root)].filter((path) => own.test(readFileSync(join(root, path), "utf8")));
  expect(early).toEqual([]);
});

describe("the runs of npm test", () => {
  test("together run each file once: what one runs by name, the other leaves out", async () => {
    const [rest, waiting] = testRunsOf([], "tests/containers", 3000);
    const searched = async (...args: string[]) => {
      const command = [process.execPath, "test", "--test-name-pattern", "^no test has this name$", ...args];
      const child = Bun.spawn(command, { cwd: root, stdout: "ignore", stderr: "pipe" });
      return Number((await new Response(child.stderr).text()).match(/Searched (\d+) files?/)?.[1]);
    };
    expect(await searched(...waiting!.args)).toBe(waitingTests.length);
    const inPlatform = waitingTests.filter((path) => path.startsWith("platform/"));
    expect(inPlatform.length).toBeGreaterThan(0);
    expect(await searched(...rest!.args, "platform/")).toBe(
      (await searched("platform/")) - inPlatform.length,
    );
  });

  test("with chosen files, are one", () => {
    const [run, ...others] = testRunsOf(["--changed", "cli"], "tests/containers", 3000);
    expect(run!.args).toEqual(["--changed", "cli"]);
    expect(others).toEqual([]);
  });

  test("are fewer at once on a slow machine", () => {
    const workersAt = (buildMilliseconds: number) =>
      testRunsOf([], "tests/containers", buildMilliseconds).map(({ workers }) => workers);
    expect([workersAt(3000), workersAt(8000)]).toEqual([
      [4, 2],
      [3, 2],
    ]);
  });

  test("of the containers, have fewer processes", () => {
    const [[all], [some]] = [["tests/containers"], ["tests/containers/release"]].map((chosen) =>
      testRunsOf(chosen, "tests/containers", 3000),
    ) as [TestRun[], TestRun[]];
    expect([all!.workers, some!.workers]).toEqual([2, 2]);
    expect(testRunsOf(["tests/containers", "cli"], "tests/containers", 3000)[0]!.workers).toBeGreaterThan(2);
  });
});
