import { join } from "node:path";
import { openSql, type Sql } from "../../drizzle/client.ts";
import * as support from "../support.ts";

const workers = 3;
/** Each due every 50 ms: 8,000 slots a second. */
const tasks = 400;
const rounds = 3;
const roundSeconds = support.numberFrom("SVC_BENCH_SECONDS", 5);
const aim = 4000;

const ways = [
  { name: "svc", about: "each claimed and finished, by the rules of the schedule" },
  {
    name: "bare",
    about: "one INSERT ... ON CONFLICT DO NOTHING per slot into the same table, never finished",
  },
] as const;

/** Measures how many slots per second three workers claim and finish while competing for the same tasks. */
export async function measureClaims(
  parts: AsyncDisposableStack,
  directory: string,
  url: string,
): Promise<void> {
  const sql = openSql(url, { max: 1 });
  const rates = { svc: [] as number[], bare: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    for (const { name } of ways) rates[name].push(await rateOf(parts, { directory, url, sql }, name));
  }
  await sql.end({ timeout: 5 });
  console.log(`\nclaims         ${workers} workers race for the slots of ${tasks} tasks\n`);
  for (const { name, about } of ways) {
    const all = rates[name].map((rate) => rate.toFixed(0)).join(", ");
    console.log(`${name.padEnd(15)}${support.median(rates[name]).toFixed(0)} slots/s (${all}), ${about}`);
  }
  const [our, bare] = [support.median(rates.svc), support.median(rates.bare)];
  console.log(`${"svc / bare".padEnd(15)}${(our / bare).toFixed(2)}`);
  console.log(`${"".padEnd(15)}aim: ${aim} a second, of a prototype, ${support.verdict(our >= aim)}`);
}

async function rateOf(
  parts: AsyncDisposableStack,
  { directory, url, sql }: { directory: string; url: string; sql: Sql },
  way: (typeof ways)[number]["name"],
): Promise<number> {
  await sql`truncate run, run_fault, scheduled_task, worker`;
  const started = parts.use(new AsyncDisposableStack());
  for (let at = 0; at < workers; at += 1) {
    await support.startProgram(started, directory, {
      command: [process.execPath, "--no-orphans", join(support.root, "bench/schedule/claimer.ts")],
      env: { SVC_DATABASE_URL: url, BENCH_TASKS: String(tasks), BENCH_WAY: way },
      ready: /ready: (\S+)/,
    });
  }
  // Caches are cold at first.
  await Bun.sleep(roundSeconds * 500);
  const count = async () => Number((await sql`select count(*) from run where state = 'Done'`)[0]?.count);
  const [before, begun] = [await count(), performance.now()];
  await Bun.sleep(roundSeconds * 1000);
  const rate = ((await count()) - before) / ((performance.now() - begun) / 1000);
  await started.disposeAsync();
  return rate;
}
