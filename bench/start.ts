import { describeExecutable, freshExecutable } from "./executable.ts";
import { BenchError, ensureProgram, environment, firstLine, median, quantile, verdict } from "./support.ts";

const warmUps = 3;
const runs = 30;

/** Compares `svc --version` with the GitHub CLI, which is a single executable too. */
export async function benchStart(): Promise<void> {
  const gh = ensureProgram("gh");
  const svc = await freshExecutable();
  const contenders = [
    {
      name: "svc --version",
      about: describeExecutable(svc),
      command: [svc, "--version"],
      times: [] as number[],
    },
    {
      name: "gh --version",
      about: firstLine([gh, "--version"]),
      command: [gh, "--version"],
      times: [] as number[],
    },
  ];
  for (const { name, about } of contenders) console.log(`${name.padEnd(15)}${about}`);
  console.log(`\n${runs} runs of each in turn, after ${warmUps} that do not count; milliseconds:\n`);
  for (let run = -warmUps; run < runs; run += 1) {
    for (const { command, times } of contenders) {
      const milliseconds = timeRun(command);
      if (run >= 0) times.push(milliseconds);
    }
  }
  for (const { name, times } of contenders) {
    const figures = [median(times), quantile(times, 0), quantile(times, 1)].map((time) => time.toFixed(1));
    console.log(
      `${name.padEnd(15)}median ${figures[0]!.padStart(6)}   fastest ${figures[1]}   slowest ${figures[2]}`,
    );
  }
  const [ours = 0, theirs = 1] = contenders.map(({ times }) => median(times));
  const ratio = ours / theirs;
  console.log(`\nsvc / gh       ${ratio.toFixed(2)}   aim: no slower (at most 1), ${verdict(ratio <= 1)}`);
}

/** Measures from before the start to after the exit, without a shell. */
function timeRun(command: string[]): number {
  const env = environment();
  const started = performance.now();
  const { exitCode } = Bun.spawnSync(command, { env, stdio: ["ignore", "ignore", "ignore"] });
  const milliseconds = performance.now() - started;
  if (exitCode !== 0) throw new BenchError(`${command.join(" ")} ended with ${exitCode}`);
  return milliseconds;
}
