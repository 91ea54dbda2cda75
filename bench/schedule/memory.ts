import { readFileSync } from "node:fs";
import { type Started, startProgram, svcFromSource } from "../support.ts";

const idleSeconds = 15;

/** The resident memory of a process. Linux only, because it reads /proc. */
export function residentMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(status.match(/^VmRSS:\s+(\d+) kB$/m)?.[1]) / 1024;
}

/** Measures an idle worker with the whole schedule, some time after its start. */
export async function measureMemory(
  parts: AsyncDisposableStack,
  directory: string,
  url: string,
): Promise<void> {
  const started = parts.use(new AsyncDisposableStack());
  const { pid }: Started = await startProgram(started, directory, {
    command: [...svcFromSource, "scheduler", "start"],
    env: { SVC_DATABASE_URL: url, SVC_LOG_LEVEL: "warn" },
    ready: /(worker for [^"]+)/,
  });
  await Bun.sleep(idleSeconds * 1000);
  console.log(
    `\nidle worker    svc scheduler start, from source on Bun ${Bun.version}: ${residentMegabytes(pid).toFixed(0)} MB resident`,
  );
  await started.disposeAsync();
}
