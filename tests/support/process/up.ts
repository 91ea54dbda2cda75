import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { descendants } from "./processes.ts";

const root = join(import.meta.dir, "../../..");
const source = [
  process.execPath,
  "--no-env-file",
  `--config=${join(root, "bunfig.toml")}`,
  join(root, "cli/main.ts"),
];
/** As in tests/support/cli/process.ts: the executable of the run, and without one the source. */
export const svc: readonly string[] = process.env.SVC_TEST_PROGRAM ? [process.env.SVC_TEST_PROGRAM] : source;
/** Three ways to run `svc up`: directly, as `npx svc` does, and as `npm start` does. */
const directly = [...svc, "up"];
/** From the source, as users run it. Only then do the other processes end when this one is killed. */
export const fromSource = [...source, "up"];
export const wrapped = ["node", join(root, "bin/svc.mjs"), "up"];
export const npmStart = ["npm", "--prefix", root, "start", "--"];

export interface Up {
  process: ChildProcess;
  pid: number;
  /** The output of both streams so far. */
  output(): string;
  /** The address that it prints when everything is ready. @throws if it exits before that */
  ready: Promise<string>;
  /** The exit code as a shell reports it: 128 + signal for a process that a signal killed. */
  exit: Promise<number>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The environment of a process that `svc up` started, found by its command. */
export function environmentOf(pid: number, command: string): Record<string, string> {
  const part = descendants(pid).find((one) => one.command.includes(command))!;
  const lines = readFileSync(`/proc/${part.pid}/environ`, "utf8").split("\0").filter(Boolean);
  return Object.fromEntries(lines.map((line) => [line.split("=", 1)[0]!, line.slice(line.indexOf("=") + 1)]));
}

/** Starts `svc up` on free ports with a data directory. */
export function startUp(
  dataDir: string,
  args: string[] = [],
  env: Record<string, string> = {},
  command = directly,
): Up {
  const [program, ...words] = [...command, "--port", "0", "--idp-port", "0", "--data-dir", dataDir, ...args];
  // Only the required variables, so that the developer's shell does not influence a test.
  const { PATH, HOME, TMPDIR } = process.env;
  const child = spawn(program!, words, {
    env: { PATH, HOME, TMPDIR, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const ready = Promise.withResolvers<string>();
  ready.promise.catch(() => {});
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += chunk;
      const address = output.match(/svc is ready at (\S+)[\s\S]*Ctrl-C/)?.[1];
      if (address) ready.resolve(address);
    });
  }
  const exit = new Promise<number>((settle) => {
    child.once("close", (code, signal) => {
      ready.reject(new Error(`svc up ended early:\n${output}`));
      settle(code ?? 128 + { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 }[signal as "SIGINT"]);
    });
  });
  return {
    process: child,
    pid: child.pid!,
    output: () => output,
    ready: ready.promise,
    exit,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await exit;
    },
  };
}
