import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Unavailable } from "../../platform/errors.ts";
import { ownCommand } from "../../platform/own_command.ts";
import type { Environment } from "../../platform/variable.ts";
import { LogFile } from "./log_file.ts";
import { root } from "./settings.ts";

export interface ChildOptions {
  /** Shown in front of its lines; its log is `<data dir>/log/<name>.log`. */
  name: string;
  /** Arguments of `svc`, without secrets: other users of the machine can read them. */
  args: string[];
  environment: Environment;
  dataDir: string;
  /** Called with each line to show to the user. */
  show: (line: string) => void;
  verbose: boolean;
}

export interface Child {
  pid: number;
  /** Rejects with the reason if the process exits without being stopped. */
  failed: Promise<never>;
  stop(graceSeconds: number): Promise<void>;
}

const keptLines = 5;

/**
 * Starts a command of `svc` as a child process. It exits when this process does, even if that is killed (see ownCommand). It
 * is not in the process group of the terminal: only this process gets Ctrl-C, and stops its children in order.
 */
export function startChild(options: ChildOptions): Child {
  const { name, args, environment, dataDir } = options;
  const [program = process.execPath, ...before] = ownCommand();
  const child = spawn(program, [...before, ...args], {
    cwd: root,
    env: environment,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    windowsHide: true,
  });
  const logFile = join(dataDir, "log", `${name}.log`);
  const last = copyOutput(child, logFile, options);
  let stopping = false;
  // `close`, not `exit`, because its output has been read by then.
  const ended = new Promise<string>((settle) => {
    child.once("error", (error) => settle(`cannot be started: ${error.message}`));
    child.once("close", (code, signal) => settle(`ended with ${signal ?? `exit code ${code}`}`));
  });
  const failed = new Promise<never>((_, reject) => {
    ended.then((how) => {
      if (stopping) return;
      const words = last.length > 0 ? ["; last output:", ...last.map((line) => `  ${line}`)].join("\n") : "";
      reject(new Unavailable(`${name} ${how} (log: ${logFile})${words}`));
    });
  });
  failed.catch(() => {});
  return {
    pid: child.pid ?? 0,
    failed,
    async stop(graceSeconds) {
      stopping = true;
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), graceSeconds * 1000);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** Copies all output to the log, and shows important lines. @returns the last lines, updated with each new one */
function copyOutput(child: ChildProcess, logFile: string, { name, show, verbose }: ChildOptions): string[] {
  const log = new LogFile(logFile, (error) => show(`${name}: cannot write its log: ${error.message}`));
  child.once("close", () => log.end());
  const last: string[] = [];
  for (const stream of [child.stdout!, child.stderr!]) {
    createInterface({ input: stream }).on("line", (line) => {
      log.write(`${line}\n`);
      const { text, important } = readLine(line);
      last.push(text);
      if (last.length > keptLines) last.shift();
      if (verbose || important) show(`${name}: ${text}`);
    });
  }
  return last;
}

/** Shown, because only the process knows a port that it chose. */
const metricsAddress = /^metrics at /;

/**
 * Parses a line of pino's JSON log, or any other. Important are lines from level `error` (50) on, those that look like a
 * crash, and the address of the metrics.
 */
function readLine(line: string): { text: string; important: boolean } {
  if (line.startsWith("{")) {
    try {
      const { level, msg, err, request_id: requestId } = JSON.parse(line);
      const cause = err?.message ? ` (${err.type}: ${err.message})` : "";
      const request = requestId ? ` [request ${requestId}]` : "";
      if (typeof level === "number" && msg !== undefined)
        return { text: `${msg}${cause}${request}`, important: level >= 50 || metricsAddress.test(msg) };
    } catch {
      // Not pino's.
    }
  }
  return { text: line, important: metricsAddress.test(line) || /\b(error|panic|exception)\b/i.test(line) };
}
