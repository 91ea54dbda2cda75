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
  /** Arguments of `svc`. Never a secret: everybody on the machine can read them. */
  args: string[];
  environment: Environment;
  dataDir: string;
  /** Called with each line that a person should see. */
  show: (line: string) => void;
  verbose: boolean;
}

export interface Child {
  pid: number;
  /** Rejects, with the reason, when it ends without having been told to. */
  failed: Promise<never>;
  stop(graceSeconds: number): Promise<void>;
}

const keptLines = 5;

/**
 * Starts a command of `svc` as a process of its own. It ends when we end, whatever ends us (see ownCommand), and it
 * is no member of the terminal's process group: Ctrl-C reaches us, and we stop the parts in order.
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
  // `close`, not `exit`: its last words have been read then.
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

/** All of it to the log; what matters to the person. Returns the last lines, live. */
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

/** Only the part itself knows a port that it has chosen, and only who is told may ask there. */
const tellsPlace = /^metrics at /;

/**
 * A line of pino's JSON log, or anything else. Important: from level `error` (50) on, what looks like a crash, and where
 * something is served that is announced nowhere else.
 */
function readLine(line: string): { text: string; important: boolean } {
  if (line.startsWith("{")) {
    try {
      const { level, msg, err, request_id: requestId } = JSON.parse(line);
      const cause = err?.message ? ` (${err.type}: ${err.message})` : "";
      const request = requestId ? ` [request ${requestId}]` : "";
      if (typeof level === "number" && msg !== undefined)
        return { text: `${msg}${cause}${request}`, important: level >= 50 || tellsPlace.test(msg) };
    } catch {
      // Not pino's.
    }
  }
  return { text: line, important: tellsPlace.test(line) || /\b(error|panic|exception)\b/i.test(line) };
}
