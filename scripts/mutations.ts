import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { openSql } from "../drizzle/connection/sql.ts";
import { startEmbeddedPostgres } from "../drizzle/embedded.ts";
import { generateMutations } from "./mutations_generate.ts";
import { createRunDirectory } from "./run_directory.ts";
import { waitingTests } from "./waiting_tests.ts";

const root = join(import.meta.dir, "..");
const record = join(import.meta.dir, "mutations.json");
/** For all tests of one mutation. */
const patienceMilliseconds = 60_000;
const mostTestFiles = 6;

/** A fault in the source, and the test that notices it. */
export interface Mutation {
  file: string;
  /** Occurs once in the file. */
  find: string;
  replace: string;
  /** Chosen by a person, or generated. */
  chosen: boolean;
  /** Test files to try first. */
  tests?: string[];
  /** The first test that failed; null: none did; undefined: it has not been run. */
  by?: { file: string; title: string } | null;
}

/**
 * Breaks the source, one mutation of `mutations.json` at a time, and records which test notices. It works on a copy of the
 * clone, with one PostgreSQL for all runs. A failure counts only if the same test passes without the mutation, so a module
 * that no longer loads is not "noticed".
 *
 * Without an argument, it runs the mutations without a result. `--generate` adds generated ones first. `--check` runs those
 * whose noticing test is gone or whose file has changed since the last commit of the record, and fails if one that was
 * noticed no longer is.
 */
async function main(args: string[]): Promise<number> {
  const mutations: Mutation[] = existsSync(record) ? JSON.parse(readFileSync(record, "utf8")) : [];
  const files = Bun.spawnSync(["git", "ls-files", "-z"], { cwd: root }).stdout.toString().split("\0");
  const sources = files.filter((file) => file.endsWith(".ts") && existsSync(join(root, file)));
  if (args.includes("--generate")) mutations.push(...generateMutations(sources, root));
  const check = args.includes("--check");
  const changed = check ? changedSinceRecorded() : new Set<string>();
  const due = mutations.filter(({ file, by }) =>
    check ? by && (changed.has(file) || !hasTest(by)) : by === undefined,
  );
  await using bench = await openBench(files);
  const tests = new TestChoice(sources);
  let missed = 0;
  for (const mutation of due) {
    const started = performance.now();
    const before = mutation.by;
    const by = await bench.run(mutation, [...(before ? [before.file] : []), ...tests.of(mutation)]);
    if (by === "gone") {
      console.log(`GONE ${mutation.file}: ${mutation.find.trim()}`);
      continue;
    }
    if (before && !by) missed++;
    // What was noticed stays in the record, so that the next check fails too.
    else mutation.by = by;
    writeFileSync(record, `${JSON.stringify(mutations, null, 2)}\n`);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    console.log(`${by ? "noticed" : "MISSED"} ${seconds} s ${mutation.file}: ${mutation.replace.trim()}`);
  }
  for (const chosen of [true, false]) {
    const all = mutations.filter((one) => one.chosen === chosen);
    console.log(`${chosen ? "chosen" : "generated"}: ${all.filter(({ by }) => by).length} of ${all.length} noticed`);
  }
  return missed === 0 ? 0 : 1;
}

/** The files that differ from the commit that last changed the record. */
function changedSinceRecorded(): Set<string> {
  const git = (...args: string[]) => Bun.spawnSync(["git", ...args], { cwd: root }).stdout.toString().trim();
  const commit = git("log", "-1", "--format=%H", "--", relative(root, record));
  return new Set(git("diff", "--name-only", commit).split("\n"));
}

function hasTest({ file, title }: { file: string; title: string }): boolean {
  const last = title.split(" > ").at(-1)!;
  return existsSync(join(root, file)) && readFileSync(join(root, file), "utf8").includes(last);
}

/** Chooses the tests of a file: beside it, importing it, in its folder, importing its importers, of its HTTP routes. */
class TestChoice {
  private readonly tests: string[];
  private readonly importers = new Map<string, string[]>();

  constructor(sources: string[]) {
    this.tests = sources.filter((file) => file.endsWith(".test.ts") && !file.startsWith("tests/containers"));
    for (const file of sources)
      for (const [, to] of readFileSync(join(root, file), "utf8").matchAll(/\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)) {
        const target = join(dirname(file), to!);
        this.importers.set(target, [...(this.importers.get(target) ?? []), file]);
      }
  }

  of({ file, chosen, tests = [] }: Mutation): string[] {
    const folder = dirname(file);
    const name = basename(file, ".ts");
    const words = new Set([...folder.split("/"), name]);
    const importers = this.importers.get(file) ?? [];
    const found = [
      ...this.tests.filter((test) => dirname(test) === folder && basename(test).startsWith(name)),
      ...importers,
      ...this.tests.filter((test) => dirname(test) === folder),
      ...importers.flatMap((one) => [one.replace(/\.ts$/, ".test.ts"), ...(this.importers.get(one) ?? [])]),
      ...this.tests.filter((test) => test.startsWith("server/") && words.has(test.split("/")[1]!)),
    ].filter((test) => this.tests.includes(test));
    const slow = (test: string) => Number(waitingTests.includes(test) || /^(cli|worker|tests)\//.test(test));
    const nearest = [...new Set(found)].sort((one, other) => slow(one) - slow(other));
    return [...tests, ...nearest.slice(0, chosen ? 2 * mostTestFiles : mostTestFiles)];
  }
}

/** A copy of the clone, and a PostgreSQL. */
async function openBench(files: string[]) {
  const directory = await createRunDirectory();
  const copy = join(directory, "svc");
  for (const file of files.filter((file) => file !== "" && existsSync(join(root, file))))
    cpSync(join(root, file), join(copy, file));
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  mkdirSync(join(directory, "t"));
  const options = { directory: join(directory, "postgres"), durable: false, temporary: true };
  const postgres = await startEmbeddedPostgres(options);
  const sql = openSql(postgres.url, { max: 1 });
  const passing = new Map<string, boolean>();

  /** Runs the tests until one fails. */
  const test = async (args: string[], milliseconds: number) => {
    const command = [process.execPath, "test", "--bail=1", "--no-isolate", "--timeout=30000", ...args];
    const env = { ...process.env, TMPDIR: join(directory, "t"), SVC_TEST_DATABASE_URL: postgres.url };
    const child = Bun.spawn(command, { cwd: copy, env, stdio: ["ignore", "ignore", "pipe"], detached: true });
    const end = () => {
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {
        // All processes of the group have ended.
      }
    };
    const timer = setTimeout(end, milliseconds);
    child.exited.then(() => setTimeout(end, 200));
    const output = await new Response(child.stderr).text();
    clearTimeout(timer);
    end();
    for (const { datname } of await sql`select datname from pg_database where datname like 'svc_test_%'`)
      await sql`drop database if exists ${sql(datname)} with (force)`;
    const file = [...output.matchAll(/^(\S+\.test\.ts):$/gm)].at(-1)?.[1];
    const title = output.match(/^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/m)?.[1];
    return { exitCode: child.exitCode, failed: file && title ? { file, title } : undefined };
  };

  /** Whether the test passes without a mutation. */
  const passes = async ({ file, title }: { file: string; title: string }) => {
    const key = `${file} ${title}`;
    const pattern = `^${title.replaceAll(" > ", " ").replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
    const result = passing.get(key) ?? (await test([`./${file}`, "-t", pattern], 120_000)).exitCode === 0;
    passing.set(key, result);
    return result;
  };
  // Creates the template of all databases before anything is broken.
  await test(["./core/list", "./server/link"], 120_000);

  return {
    async run({ file, find, replace }: Mutation, tests: string[]): Promise<Mutation["by"] | "gone"> {
      const text = readFileSync(join(root, file), "utf8");
      if (text.split(find).length !== 2) return "gone";
      const deadline = performance.now() + patienceMilliseconds;
      const all = [...new Set(tests)].filter((test) => existsSync(join(root, test)));
      // The nearest first: most are noticed there, and each run starts a process.
      for (const some of [all.slice(0, 2), all.slice(2)]) {
        if (some.length === 0 || performance.now() > deadline) break;
        writeFileSync(join(copy, file), text.replace(find, () => replace));
        const { failed } = await test(some.map((one) => `./${one}`), deadline - performance.now());
        writeFileSync(join(copy, file), text);
        if (failed && (await passes(failed))) return failed;
      }
      return null;
    },
    async [Symbol.asyncDispose]() {
      await sql.end();
      await postgres.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

process.exit(await main(process.argv.slice(2)));
