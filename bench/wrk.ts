import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { descendants } from "../tests/support/process/processes.ts";
import { BenchError, environment, firstLine, keep, type Started } from "./support.ts";

export interface Round {
  /** Responses per second. */
  rate: number;
  answers: number;
  /** Responses other than 2xx. */
  refused: number;
  /** Processor time used by the loaded server. */
  processorMicroseconds: number;
  /** From a request to its response. */
  milliseconds: { p50: number; p95: number; p99: number };
  /** `<status> <count>` of each, only on request, because it slows wrk down too much for a measurement. */
  statuses: string;
}

/** Loads one server for a number of seconds. */
export type Load = (seconds: number, options?: { statuses: boolean; pause?: number }) => Promise<Round>;

export const connections = 32;

/**
 * Prepares a load that sends `requests` to `address` one after another in a loop, each time continuing where it
 * stopped; `file` stores the list. A client sends its next request when it has the response, or up to twice `pause`
 * milliseconds later.
 */
export async function prepareLoad(
  parts: AsyncDisposableStack,
  wrk: string,
  { address, pid, requests, clients = connections }: Started & { requests: string[]; clients?: number },
  file: string,
): Promise<Load> {
  await writeFile(file, requests.map((request) => `${request}\0`).join(""), { mode: 0o600 });
  const script = join(import.meta.dir, "walk.lua");
  let at = 0;
  return async (seconds, { statuses, pause = 0 } = { statuses: false }) => {
    // A slow response also counts; by default wrk gives up after two seconds.
    const command = [wrk, "-t1", `-c${clients}`, `-d${seconds}s`, "--timeout", "30s", "-s", script, address];
    command.push("--", file, String(at), String(pause));
    if (statuses) command.push("statuses");
    const before = processorMicroseconds(pid);
    const child = await keep(
      parts,
      async () => Bun.spawn(command, { env: environment(), stdio: ["ignore", "pipe", "pipe"] }),
      (started) => started.kill("SIGKILL"),
    );
    const output = (
      await Promise.all([child.stdout, child.stderr].map((stream) => new Response(stream).text()))
    ).join("");
    const numbers = output
      .match(/^result (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)$/m)
      ?.slice(1)
      .map(Number);
    if (!numbers) throw new BenchError(`wrk failed: ${output.trim()}`);
    const [answers = 0, microseconds = 0, refused = 0, broken = 0, p50 = 0, p95 = 0, p99 = 0] = numbers;
    if (answers === 0 || broken > 0) throw new BenchError(`${broken} connections broke, ${answers} answers`);
    at = (at + answers) % requests.length;
    return {
      rate: (answers / microseconds) * 1e6,
      answers,
      refused,
      processorMicroseconds: processorMicroseconds(pid) - before,
      milliseconds: { p50: p50 / 1000, p95: p95 / 1000, p99: p99 / 1000 },
      statuses: [...output.matchAll(/^status (.*)$/gm)].map(([, line]) => line).join(", "),
    };
  };
}

/**
 * The processor time used by a server and its workers so far: user and system time (proc(5), stat fields 14 and 15, in
 * hundredths of a second).
 */
export function processorMicroseconds(pid: number): number {
  const used = [pid, ...descendants(pid).map((one) => one.pid)].map((one) => {
    const stat = readFileSync(`/proc/${one}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10_000;
  });
  return used.reduce((sum, one) => sum + one, 0);
}

/** Debian's version is only its revision, e.g. `wrk debian/4.1.0-3+b2 [epoll] ...`. */
export function wrkVersion(wrk: string): string {
  return firstLine([wrk, "-v"]).replace(/ \[.*/, "");
}

/** The text of a complete HTTP request. */
export function requestText(method: string, url: string, headers: Record<string, string>, body = ""): string {
  const { host, pathname, search } = new URL(url);
  const lines = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${pathname}${search} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}
