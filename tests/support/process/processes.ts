import { readdirSync, readFileSync } from "node:fs";

/** A process, identified by its number and start time, because numbers are reused. Linux only (/proc). */
export interface Process {
  pid: number;
  started: string;
  command: string;
}

interface Stat extends Process {
  parent: number;
  zombie: boolean;
}

/** All living descendants of `pid`. */
export function descendants(pid: number): Process[] {
  const all = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? (read(Number(name)) ?? []) : []));
  const below = (parent: number): Stat[] =>
    all.filter((one) => one.parent === parent).flatMap((one) => [one, ...below(one.pid)]);
  return below(pid).filter(({ zombie }) => !zombie);
}

function isAlive({ pid, started }: Process): boolean {
  const now = read(pid);
  return now !== undefined && !now.zombie && now.started === started;
}

/** Kills all PostgreSQL processes that this one started, and waits until they have exited. */
export async function killPostgres(): Promise<void> {
  const all = descendants(process.pid).filter(({ command }) => command.includes("postgres"));
  for (const { pid } of all) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended because of the ones before it.
    }
  }
  await untilGone(all);
}

/** Waits until all of them have exited. @throws if one still lives after `seconds` */
export async function untilGone(processes: Process[], seconds = 20): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const left = processes.filter(isAlive);
    if (left.length === 0) return;
    if (performance.now() > deadline) {
      throw new Error(`still there after ${seconds} s: ${left.map(({ command }) => command).join(" | ")}`);
    }
    await Bun.sleep(20);
  }
}

function read(pid: number): Stat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may contain anything. After it: state, parent, ..., start time (proc(5), field 22).
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    return { pid, command, parent: Number(fields[1]), started: fields[19]!, zombie: fields[0] === "Z" };
  } catch {
    return undefined;
  }
}
