import { join } from "node:path";
import { openSql } from "../../drizzle/client.ts";
import * as support from "../support.ts";

const workers = 3;
/** Due every 50 ms each: 8,000 slots a second. */
const tasks = 400;
const rounds = 3;
const roundSeconds = 5;
const aim = 4000;

/** Slots that three workers claim and finish in a second, all of them racing for those of the same tasks. */
export async function measureClaims(
  parts: AsyncDisposableStack,
  directory: string,
  url: string,
): Promise<void> {
  const sql = openSql(url, { max: 1 });
  await sql`truncate run, run_fault, scheduled_task, worker`;
  const started = parts.use(new AsyncDisposableStack());
  for (let at = 0; at < workers; at += 1) {
    await support.startProgram(started, directory, {
      command: [process.execPath, "--no-orphans", join(support.root, "bench/schedule/claimer.ts")],
      env: { SVC_DATABASE_URL: url, BENCH_TASKS: String(tasks) },
      ready: /ready: (\S+)/,
    });
  }
  const count = async () => Number((await sql`select count(*) from run where state = 'Done'`)[0]?.count);
  const rates: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const [before, begun] = [await count(), performance.now()];
    await Bun.sleep(roundSeconds * 1000);
    const rate = ((await count()) - before) / ((performance.now() - begun) / 1000);
    // Caches are cold at first.
    if (round > 0) rates.push(rate);
  }
  await started.disposeAsync();
  await sql.end({ timeout: 5 });
  const rate = support.median(rates);
  console.log(
    `\nclaims         ${rate.toFixed(0)} slots/s (${rates.map((one) => one.toFixed(0)).join(", ")}), each claimed and finished, by ${workers} workers`,
  );
  console.log(`${"".padEnd(15)}aim: ${aim}, of a prototype, ${support.verdict(rate >= aim)}`);
}
