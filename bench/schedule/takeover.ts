import { join } from "node:path";
import { openSql } from "../../drizzle/client.ts";
import { until } from "../../tests/support/process/until.ts";
import * as support from "../support.ts";

const rounds = 5;
const leaseSeconds = 3;
const aim = 100;

/** Measures from the end of a dead worker's lease to the first action of its successor. */
export async function measureTakeover(
  parts: AsyncDisposableStack,
  directory: string,
  url: string,
): Promise<void> {
  const sql = openSql(url, { max: 1 });
  const start = (on: AsyncDisposableStack, hangs: boolean) =>
    support.startProgram(on, directory, {
      command: [process.execPath, "--no-orphans", join(support.root, "bench/schedule/worker.ts")],
      env: {
        SVC_DATABASE_URL: url,
        SVC_LOG_LEVEL: "warn",
        BENCH_LEASE: String(leaseSeconds),
        ...(hangs ? { BENCH_HANGS: "yes" } : {}),
      },
      ready: /ready: (\S+)/,
    });
  const begun = (pid: number) =>
    until("a worker to begin", async () => (await sql`select slot, at from tick where pid = ${pid}`)[0]);
  const [behind, all]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    await sql`truncate tick, run, run_fault, scheduled_task, worker`;
    const started = parts.use(new AsyncDisposableStack());
    const victim = await start(started, true);
    await begun(victim.pid);
    const heir = await start(started, false);
    const alive = async () => (await sql`select from worker`).length === 2;
    await until("the heir to be there", alive);
    process.kill(victim.pid, "SIGKILL");
    const [dead] = await sql`select clock_timestamp() as at, lease_until from run where state = 'Running'`;
    const { at } = await begun(heir.pid);
    behind.push(at.getTime() - dead!.lease_until.getTime());
    all.push(at.getTime() - dead!.at.getTime());
    await started.disposeAsync();
  }
  await sql.end({ timeout: 5 });
  const middle = support.median(behind);
  console.log(
    `\ntakeover       ${middle.toFixed(0)} ms after the end of the lease (${behind.join(", ")}); with a lease of ${leaseSeconds} s`,
  );
  console.log(
    `${"".padEnd(15)}${(support.median(all) / 1000).toFixed(1)} s after SIGKILL   aim: within ${aim} ms of the lease, ${support.verdict(middle <= aim)}`,
  );
}
