import { closeSync, openSync, readFileSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { startEmbeddedPostgres } from "../drizzle/embedded.ts";
import { ensureEngine, NoEngineError } from "../tests/support/containers/engine.ts";
import { leftoversOf, nameOfRun } from "../tests/support/containers/engine_leftovers.ts";
import { startDebianPostgres } from "../tests/support/database/debian_postgres.ts";
import { ensure, programs } from "../tests/support/programs.ts";
import { buildForTests } from "./build_for_tests.ts";
import { runChecks } from "./check.ts";
import { fastTestsOf } from "./fast_tests.ts";
import { type Counts, readReport } from "./junit.ts";
import { createRunDirectory } from "./run_directory.ts";
import { type TestRun, testRunsOf } from "./test_runs.ts";

const root = join(import.meta.dir, "..");
/** For one test. Bun's limit of 5 s fails on busy machines. */
const patienceMilliseconds = 60_000;

/**
 * Tests that need a Docker engine. They run if they are named, or after all others with `--containers` if an engine is
 * available.
 */
const containers = "tests/containers";

/** Part of the name of every object of this run in an engine. */
const runName = nameOfRun();

/** The tests that import, directly or not, files that differ from the last or the named commit. */
const changedFlag = /^--changed(=.+)?$/;

/**
 * `npm test`: the static checks, then every test against one PostgreSQL that it starts. `npm test -- <file> ...` runs only
 * these files, `npm test -- --changed` the tests that import changed files, and `npm test -- --fast` those that need neither
 * PostgreSQL nor a process of their own. The last line is `N passed, N failed`; the
 * exit code is 0 only if at least one test passed and none failed.
 */
async function main(args: string[]): Promise<number> {
  if (args.includes("--fast")) return await runFastTests(args.filter((arg) => arg !== "--fast"));
  const changed = args.find((arg) => changedFlag.test(arg));
  const files = args.filter((arg) => arg !== "--containers" && arg !== changed);
  const rounds = args.includes("--containers") ? [files, [containers]] : [files];
  const total: Counts = { passed: 0, failed: 0 };
  const add = ({ passed, failed }: Counts) => {
    total.passed += passed;
    total.failed += failed;
  };
  const notes: string[] = [];
  try {
    // The checks run while the programs are installed that the tests need.
    const checks = files.length === 0 ? runChecks() : { passed: 0, failed: 0 };
    for (const round of rounds) ensureWhatIsNeeded(round);
    add(await checks);
    for (const round of rounds) add(await runRound(round, changed));
  } catch (error) {
    const optional = error instanceof NoEngineError && args.includes("--containers");
    notes.push(optional ? `NOT RUN: ${error.message}` : (error as Error).message);
    if (!optional) add({ passed: 0, failed: 1 });
  }
  if (args.length === 0)
    notes.push(
      "The tests of the containers were not run: they need a Docker engine (npm run test:containers)",
    );
  if (changed !== undefined)
    notes.push(
      "Tests that start svc as a process do not import the changed files: run npm test before you push",
    );
  for (const note of notes) console.log(note);
  console.log(`${total.passed} passed, ${total.failed} failed`);
  return total.failed === 0 && total.passed > 0 ? 0 : 1;
}

/** Without the static checks, a build or a database: this is for the seconds after a change. */
async function runFastTests(files: string[]): Promise<number> {
  const directory = await createRunDirectory(process.env);
  try {
    const args = fastTestsOf(testFiles(files), root).map((path) => `./${path}`);
    if (args.length === 0) throw new Error("none of these files is fast: run npm test without --fast");
    const run = { workers: availableParallelism(), args };
    const env = { TMPDIR: directory, ...process.env };
    const { passed, failed } = await runBunTest(run, { directory, name: "fast", immediate: true, env });
    console.log("Only tests that need neither PostgreSQL nor another process: run npm test before you push");
    console.log(`${passed} passed, ${failed} failed`);
    return failed === 0 && passed > 0 ? 0 : 1;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Removes the run's objects from the engine afterwards, and stops the engine if it was not running before. */
async function runRound(files: string[], changed?: string): Promise<Counts> {
  if (!textsOf(files).some((text) => text.includes("support/containers"))) return runTests(files, changed);
  using _engine = ensureEngine();
  using _leftovers = leftoversOf(runName);
  // Not in memory: containers mount these files, and concurrent runs share a lock among them.
  return await runTests(files, undefined, { ...process.env, TMPDIR: tmpdir() });
}

/** The programs that tests need whose text matches. */
const needs: readonly (readonly [RegExp, (typeof programs)[keyof typeof programs]])[] = [
  [/WebView|support\/browser\/chromium/, programs.chromium],
  [/support\/database\/(debian_postgres|replicas|breakable_postgres)/, programs.debianPostgres],
  [/support\/database\/pgbouncer/, programs.pgbouncer],
  [/wrongBy|breakable_postgres/, programs.faketime],
  [/support\/http\/sockets/, programs.sockets],
  [/support\/domain\/sshd|\bsshServer\b|"ssh-keygen"/, programs.ssh],
  [/support\/http\/proxies/, programs.proxies],
  [/"kubectl"/, programs.kubectl],
  [/"systemd-analyze"/, programs.systemd],
  [/\bawsCli\b/, programs.aws],
  [/"promtool"/, programs.promtool],
  [/client_certificate_server|credentials-ssh\.md/, programs.curl],
  [/"openssl"|client_certificate|kubernetes_api/, programs.openssl],
  [/support\/process\/shells/, programs.shells],
  [/"qemu-aarch64"/, programs.qemu],
  [/"mandoc"/, programs.mandoc],
];

/** Installs the programs that the tests need. @throws Error with what is missing */
function ensureWhatIsNeeded(files: string[]): void {
  const texts = textsOf(files);
  ensure(...needs.filter(([pattern]) => texts.some((text) => pattern.test(text))).map(([, need]) => need));
}

/** The contents of the chosen test files. */
function textsOf(files: string[]): string[] {
  return testFiles(files).map((path) => readFileSync(join(root, path), "utf8"));
}

/** The chosen test files; those of the containers only if they are named. */
function testFiles(files: string[]): string[] {
  const folders = "cli,core,deploy,drizzle,platform,plugins,scripts,server,tests,trial,worker";
  return [...new Bun.Glob(`{${folders}}/**/*.test.ts`).scanSync(root)].filter((path) =>
    files.length === 0 ? !path.startsWith(containers) : files.some((file) => matches(path, file)),
  );
}

/** Matches a part of the path, as `bun test` does. */
function matches(path: string, file: string): boolean {
  return path.includes(relative(root, join(process.cwd(), file)) || file) || path.includes(file);
}

async function runTests(files: string[], changed?: string, env = process.env): Promise<Counts> {
  const directory = await createRunDirectory(env);
  const program = join(directory, "svc");
  // For the tests and their processes, unless TMPDIR is set. A short name, because the paths of sockets are limited to
  // 107 bytes.
  const temporary = join(directory, "t");
  await mkdir(temporary);
  const building = performance.now();
  await buildForTests(program);
  const buildMilliseconds = performance.now() - building;
  const database = await startEmbeddedPostgres({
    directory: join(directory, "postgres"),
    durable: false,
    temporary: true,
  });
  const debian = textsOf(files).some((text) => /\b(debianServer|useDebianBackups)\b/.test(text))
    ? await startDebianPostgres(undefined, directory)
    : undefined;
  try {
    const chosen = changed === undefined ? files : [changed, ...files];
    const runs = testRunsOf(chosen, containers, buildMilliseconds);
    const results = await Promise.all(
      runs.map((run, at) =>
        runBunTest(run, {
          directory,
          name: `run${at}`,
          // The output of the others is printed when they end, so that the lines of each file stay together.
          immediate: at === 0,
          env: {
            TMPDIR: temporary,
            ...env,
            SVC_TEST_DATABASE_URL: database.url,
            ...(debian === undefined ? {} : { SVC_TEST_DEBIAN_URL: debian.url }),
            SVC_TEST_PROGRAM: program,
            SVC_TEST_RUN: runName,
          },
        }),
      ),
    );
    return {
      passed: results.reduce((sum, { passed }) => sum + passed, 0),
      failed: results.reduce((sum, { failed }) => sum + failed, 0),
    };
  } finally {
    await debian?.stop();
    await database.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

interface RunOptions {
  directory: string;
  /** The name of its report, and of the file with its output. */
  name: string;
  immediate: boolean;
  env: Record<string, string | undefined>;
}

async function runBunTest(run: TestRun, { directory, name, immediate, env }: RunOptions): Promise<Counts> {
  const report = join(directory, `${name}.xml`);
  const log = join(directory, `${name}.log`);
  const reporter = ["--reporter=junit", `--reporter-outfile=${report}`];
  // Files share the modules of their process: a tenth of all processor time went into loading these for each file.
  const limits = [`--parallel=${run.workers}`, "--no-isolate", `--timeout=${patienceMilliseconds}`];
  const output = immediate ? ("inherit" as const) : openSync(log, "a");
  const child = Bun.spawn([process.execPath, "test", ...limits, ...reporter, ...run.args], {
    cwd: root,
    env,
    stdio: ["ignore", output, output],
  });
  const forward = (signal: NodeJS.Signals) => child.kill(signal);
  // Repeated signals are ignored, because the started processes must be cleaned up.
  process.on("SIGINT", forward).on("SIGTERM", forward);
  const exitCode = await child.exited;
  process.removeListener("SIGINT", forward).removeListener("SIGTERM", forward);
  if (typeof output === "number") {
    closeSync(output);
    process.stdout.write(readFileSync(log, "utf8"));
  }
  const counts = await readReport(report);
  // A file that cannot be loaded has no test cases, but counts as a failure.
  if (exitCode !== 0 && counts.failed === 0) counts.failed = 1;
  return counts;
}

process.exit(await main(process.argv.slice(2)));
