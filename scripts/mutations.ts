import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { openSql } from "../drizzle/connection/sql.ts";
import { startEmbeddedPostgres } from "../drizzle/embedded.ts";
import { generateMutations } from "./mutations_generate.ts";
import { createRunDirectory } from "./run_directory.ts";
import { waitingTests } from "./waiting_tests.ts";

const root = join(import.meta.dir, "..");
const record = join(import.meta.dir, "mutations.json");
/** Of a run of tests: processor time, which ends an endless loop on a busy machine too, and time in all. */
const [mostProcessorSeconds, patienceMilliseconds] = [60, 300_000];
const mostTestFiles = 6;

/** A fault in the source, and the test that notices it. */
export interface Mutation {
  file: string;
  /** Occurs once in the file. */
  find: string;
  replace: string;
  /** Chosen by a person, or generated. */
  chosen: boolean;
  /** A test file to try first. */
  test?: string;
  /** The first test that failed; null: none did; undefined: it has not been run. */
  by?: Test | null;
}

interface Test {
  file: string;
  title: string;
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
    if (typeof by === "string") {
      console.log(`${by}: ${mutation.file}: ${mutation.find.trim()}`);
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
    console.log(
      `${chosen ? "chosen" : "generated"}: ${all.filter(({ by }) => by).length} of ${all.length} noticed`,
    );
  }
  return missed === 0 ? 0 : 1;
}

/** The files that differ from the commit that last changed the record. */
function changedSinceRecorded(): Set<string> {
  const git = (...args: string[]) =>
    Bun.spawnSync(["git", ...args], { cwd: root })
      .stdout.toString()
      .trim();
  const commit = git("log", "-1", "--format=%H", "--", relative(root, record));
  return new Set(git("diff", "--name-only", commit).split("\n"));
}

function hasTest({ file, title }: Test): boolean {
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
      for (const [, to] of readFileSync(join(root, file), "utf8").matchAll(
        /\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g,
      )) {
        const target = join(dirname(file), to!);
        this.importers.set(target, [...(this.importers.get(target) ?? []), file]);
      }
  }

  of({ file, chosen, test }: Mutation): string[] {
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
    const parts = folder.split("/");
    // The HTTP tests of a feature are as near as those in its folder.
    const isNear = (test: string) => dirname(test) === folder || test.startsWith(`server/${parts.at(-1)}/`);
    const far = (test: string) =>
      parts.filter((part) => !test.split("/").includes(part)).length - Number(test.startsWith("server/"));
    const distance = (test: string) => 10 * slow(test) + (isNear(test) ? 0 : far(test));
    const nearest = [...new Set(found)].sort((one, other) => distance(one) - distance(other));
    return [...(test ? [test] : []), ...nearest.slice(0, chosen ? 2 * mostTestFiles : mostTestFiles)];
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
  /** Test files that fail without a mutation: after a failure, the others of their run would not be tried. */
  const broken = new Set<string>();

  /** Runs the tests until one fails. */
  const test = async (...args: string[]) => {
    const limited = `ulimit -t ${mostProcessorSeconds} && exec "$0" test --bail=1 --no-isolate --timeout=120000 "$@"`;
    const command = ["sh", "-c", limited, process.execPath, ...args];
    const env = { ...process.env, TMPDIR: join(directory, "t"), SVC_TEST_DATABASE_URL: postgres.url };
    const child = Bun.spawn(command, { cwd: copy, env, stdio: ["ignore", "ignore", "pipe"], detached: true });
    const end = () => {
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {
        // All processes of the group have ended.
      }
    };
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      end();
    }, patienceMilliseconds);
    child.exited.then(() => setTimeout(end, 200));
    const output = await new Response(child.stderr).text();
    await child.exited;
    clearTimeout(timer);
    end();
    for (const { datname } of await sql`select datname from pg_database where datname like 'svc_test_%'`)
      await sql`drop database if exists ${sql(datname)} with (force)`;
    const file = [...output.matchAll(/^(\S+\.test\.ts):$/gm)].at(-1)?.[1];
    const title = output.match(/^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/m)?.[1];
    return { isLate, passed: child.exitCode === 0, failed: file && title ? { file, title } : undefined };
  };

  /** Whether the test passes without a mutation. */
  const passes = async ({ file, title }: Test) => {
    const key = `${file} ${title}`;
    const pattern = `^${title.replaceAll(" > ", " ").replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
    const result = passing.get(key) ?? (await test(`./${file}`, "-t", pattern)).passed;
    passing.set(key, result);
    return result;
  };
  // Creates the template of all databases before anything is broken.
  await test("./core/list/window.test.ts");

  return {
    async run({ file, find, replace }: Mutation, tests: string[]): Promise<Test | null | "GONE" | "NO TIME"> {
      const text = readFileSync(join(copy, file), "utf8");
      if (text.split(find).length !== 2) return "GONE";
      const all = [...new Set(tests)].filter((test) => existsSync(join(copy, test)));
      // The nearest first: most are noticed there, and each run starts a process.
      const runs = [all.slice(0, 2), all.slice(2)];
      for (let some = runs.shift(); some; some = runs.shift()) {
        const usable = some.filter((one) => !broken.has(one));
        if (usable.length === 0) continue;
        writeFileSync(
          join(copy, file),
          text.replace(find, () => replace),
        );
        const { failed, isLate } = await test(...usable.map((one) => `./${one}`));
        writeFileSync(join(copy, file), text);
        if (failed && (await passes(failed))) return failed;
        if (isLate) return "NO TIME";
        if (!failed) continue;
        console.log(`LEFT OUT ${failed.file}: ${failed.title} fails without a mutation, too`);
        broken.add(failed.file);
        runs.unshift(usable);
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
