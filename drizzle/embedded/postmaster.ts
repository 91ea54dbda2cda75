import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { EmbeddedPostgresError } from "./error.ts";

const startSeconds = 60;
const stopSeconds = 20;

/**
 * Waits until `postmaster.pid` of the data directory says `ready` (its eighth line; PostgreSQL writes it for pg_ctl).
 * @throws EmbeddedPostgresError with PostgreSQL's reason when it ends instead
 */
export async function waitUntilReady(
  data: string,
  pid: number,
  exited: Promise<void>,
  log: () => Promise<string>,
): Promise<void> {
  let ended = false;
  exited.then(() => (ended = true));
  const deadline = performance.now() + startSeconds * 1000;
  while (!ended && performance.now() < deadline) {
    const lines = (await readFile(join(data, "postmaster.pid"), "utf8").catch(() => "")).split("\n");
    if (lines[0] === String(pid) && lines[7]?.trim() === "ready") return;
    await Promise.race([exited, Bun.sleep(10)]);
  }
  const lines = (await log()).split("\n").filter((line) => /FATAL|ERROR|could not|HINT/.test(line));
  const reason = lines.map((line) => line.replace(/^.*?(FATAL|ERROR|LOG|HINT|WARNING): +/, "")).join("; ");
  if (!ended) process.kill(pid, "SIGQUIT");
  throw new EmbeddedPostgresError(
    `The embedded PostgreSQL did not start in ${data}: ${reason || `no answer in ${startSeconds} s`}`,
  );
}

/**
 * Stops the PostgreSQL that a killed starter left behind in this data directory. Removes a `postmaster.pid` whose
 * process id now belongs to another program: PostgreSQL itself would refuse to start while that program runs.
 */
export async function stopLeftover(data: string): Promise<void> {
  const file = join(data, "postmaster.pid");
  if (!existsSync(file)) return;
  const pid = Number(readFileSync(file, "utf8").split("\n")[0]);
  if (!isPostmaster(pid, data)) return rm(file, { force: true });
  process.kill(pid, "SIGINT");
  const deadline = performance.now() + stopSeconds * 1000;
  while (isPostmaster(pid, data)) {
    if (performance.now() > deadline) {
      throw new EmbeddedPostgresError(
        `The PostgreSQL server of ${data} (pid ${pid}) does not stop: end it with kill -QUIT ${pid}`,
      );
    }
    await Bun.sleep(20);
  }
}

/** Whether `pid` is a running PostgreSQL that was started with this data directory. */
function isPostmaster(pid: number, data: string): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  const command = commandLine(pid);
  return command.includes("postgres") && command.includes(data);
}

function commandLine(pid: number): string {
  if (process.platform === "linux") {
    try {
      // Empty for a zombie, which no longer holds any resources.
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
    } catch {
      return "";
    }
  }
  if (process.platform === "win32") return "";
  return spawnSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" }).stdout ?? "";
}
