import { join } from "node:path";
import { openSql } from "../../drizzle/client.ts";
import bossPackage from "../../node_modules/pg-boss/package.json" with { type: "json" };
import * as support from "../support.ts";
import { residentMegabytes } from "./memory.ts";

const graphileVersion = "0.18.0";
const workers = 3;
/** A single task, and as many as the schedule has, all due at the same moment. */
const loads = [1, 8];
const rounds = 3;
const roundSeconds = support.numberFrom("SVC_BENCH_SECONDS", 15);
/** Enough time for our workers to see each other's heartbeats. */
const warmUpSeconds = 12;
const aim = 50;

interface Kind {
  name: string;
  about: string;
  command: string[];
  env: Record<string, string>;
}

interface Contender extends Kind {
  /** Milliseconds from each slot to the first row that the task wrote. */
  late: number[];
  megabytes: number[];
}

/** Tasks that are due each second, with three workers of each kind, one kind after another on one database. */
export async function measureLateness(
  parts: AsyncDisposableStack,
  directory: string,
  url: string,
): Promise<void> {
  const kinds = [ours(url), graphileWorker(directory, url), pgBoss(url)];
  console.log(
    `\nlateness of tasks that are due each second; ${workers} workers, ${rounds} rounds of ${roundSeconds} s\n`,
  );
  for (const { name, about } of kinds) console.log(`${name.padEnd(16)}${about}`);
  for (const tasks of loads) {
    const contenders = kinds.map((kind) => ({ ...kind, late: [], megabytes: [] }));
    for (let round = 0; round < rounds; round += 1) {
      for (const contender of contenders) await measure(parts, directory, url, contender, tasks);
    }
    report(contenders, tasks);
  }
}

function report(contenders: readonly Contender[], tasks: number): void {
  const title = tasks === 1 ? "one task" : `${tasks} tasks`;
  console.log(`\n${title.padEnd(16)}    p50     p99     max ms   runs        a worker`);
  for (const { name, late, megabytes } of contenders) {
    const times = [0.5, 0.99, 1].map((part) => support.quantile(late, part).toFixed(1).padStart(8)).join("");
    const ran = `${late.length} of ${rounds * roundSeconds * tasks}`;
    console.log(`${name.padEnd(16)}${times}   ${ran.padEnd(12)}${support.median(megabytes).toFixed(0)} MB`);
  }
  const [our, ...theirs] = contenders as [Contender, ...Contender[]];
  const p99 = support.quantile(our.late, 0.99);
  console.log(`svc, p99   ${p99.toFixed(1)} ms   aim: under ${aim} ms, ${support.verdict(p99 < aim)}`);
  for (const { name, late } of theirs) {
    const ratios = [0.5, 0.99].map((part) => support.quantile(our.late, part) / support.quantile(late, part));
    const text = ratios.map((ratio) => ratio.toFixed(2)).join("  ");
    const met = ratios.every((ratio) => ratio < 1);
    console.log(
      `svc / ${name}, p50 and p99   ${text}   aim: earlier in both (below 1), ${support.verdict(met)}`,
    );
  }
}

async function measure(
  parts: AsyncDisposableStack,
  directory: string,
  url: string,
  { command, env, late, megabytes }: Contender,
  tasks: number,
): Promise<void> {
  const sql = openSql(url, { max: 1 });
  const started = parts.use(new AsyncDisposableStack());
  try {
    await sql.unsafe(
      `drop schema if exists graphile_worker, bench_boss cascade; truncate run, run_fault, scheduled_task, worker;
       create table if not exists tick (task text, slot timestamptz, pid int, at timestamptz default clock_timestamp())`,
    );
    const pids: number[] = [];
    // The first one creates its tables before the others start.
    for (let at = 0; at < workers; at += 1) {
      const program = {
        command,
        env: { ...env, BENCH_TASKS: String(tasks), BENCH_FIRST: at === 0 ? "yes" : "no" },
      };
      const { pid } = await support.startProgram(started, directory, { ...program, ready: /ready: (\S+)/ });
      pids.push(pid);
    }
    await Bun.sleep(warmUpSeconds * 1000);
    await sql`truncate tick`;
    await Bun.sleep(roundSeconds * 1000);
    const rows = await sql<{ late: number }[]>`
      select extract(epoch from at - slot)::float * 1000 as late from tick`;
    late.push(...rows.map((row) => row.late));
    megabytes.push(...pids.map(residentMegabytes));
  } finally {
    await started.disposeAsync();
    await sql.end({ timeout: 5 });
  }
}

function ours(url: string): Kind {
  return {
    name: "svc",
    about: `its worker on Bun ${Bun.version}, with tasks of the bench`,
    command: [process.execPath, "--no-orphans", join(support.root, "bench/schedule/worker.ts")],
    env: { SVC_DATABASE_URL: url, SVC_LOG_LEVEL: "warn" },
  };
}

/** @throws BenchError when npm cannot install it */
function graphileWorker(directory: string, url: string): Kind {
  const cwd = join(directory, "graphile-worker");
  const what = `graphile-worker@${graphileVersion}`;
  const npm = ["npm", "install", "--silent", "--no-save", "--prefix", cwd, what];
  const installed = Bun.spawnSync(npm, { env: process.env, stdio: ["ignore", "ignore", "inherit"] });
  if (installed.exitCode !== 0)
    throw new support.BenchError("graphile-worker could not be installed from npm");
  const node = findNode();
  return {
    name: "graphile-worker",
    about: `${graphileVersion} on Node ${support.firstLine([node, "--version"])}; polls every 10 ms, each job adds the next`,
    command: [node, join(support.root, "bench/schedule/graphile_worker.mjs")],
    env: { DATABASE_URL: url, BENCH_PACKAGES: cwd, NODE_ENV: "production" },
  };
}

function pgBoss(url: string): Kind {
  const node = findNode();
  return {
    name: "pg-boss",
    about: `${bossPackage.version} on Node ${support.firstLine([node, "--version"])}; a poller for each task, each every 0.5 s (its minimum), each job sends the next`,
    command: [node, join(support.root, "bench/schedule/pg_boss.mjs")],
    env: { DATABASE_URL: url, NODE_ENV: "production" },
  };
}

function findNode(): string {
  const node = Bun.which("node");
  if (!node) throw new support.BenchError("node is missing: graphile-worker and pg-boss are measured on it");
  return node;
}
