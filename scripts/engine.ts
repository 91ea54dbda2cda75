import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "..");
/** Beside the clone on machines that can pull no image: starts an engine, and makes stand-ins for the public images. */
const starter = join(root, "../shared/containers/engine.sh");

/** That there is none, and that none can be started; anything else that is amiss with one is an error like any other. */
export class NoEngineError extends Error {
  constructor(reason: string) {
    const line = reason.replaceAll(/\s*\n\s*/g, "; ");
    super(`The tests of the containers need a Docker engine, and none can be started here: ${line}`);
  }
}

/**
 * Makes sure that there is a Docker engine for what needs one. Disposing of it stops it, if it was started by this.
 * @throws NoEngineError, or Error with the reason
 */
export function ensureEngine(start = starter): Disposable {
  const { exitCode, stderr } = answer();
  const wasThere = exitCode === 0;
  if (!existsSync(start)) {
    if (!wasThere) throw new NoEngineError(stderr);
    composeProgram();
    return { [Symbol.dispose]: () => {} };
  }
  if (!wasThere && process.getuid?.() !== 0) throw new NoEngineError("only root can start one");
  const started = run("bash", start, "start", ...baseImages());
  if (started.exitCode !== 0) {
    // Installed, and yet it does not run: the kernel, or whoever has locked us in, has refused it.
    if (Bun.which("dockerd") && answer().exitCode !== 0) throw new NoEngineError(started.stderr);
    throw new Error(`The Docker engine cannot be used:\n${started.stdout}${started.stderr}`.trim());
  }
  return { [Symbol.dispose]: () => void (wasThere || run("bash", start, "stop")) };
}

/** What an engine says about itself. */
function answer(): Outcome {
  if (Bun.which("docker")) return run("docker", "info");
  return { exitCode: 1, stdout: "", stderr: "there is no docker on the PATH" };
}

export interface Outcome {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** Runs a program to its end. */
export function run(...command: string[]): Outcome {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { stdin: "ignore" });
  return { exitCode, stdout: stdout.toString().trim(), stderr: stderr.toString().trim() };
}

/** `docker compose`, or the program that there was before it. @throws Error without any */
export function composeProgram(): string[] {
  const programs = [["docker", "compose"], ["docker-compose"]];
  const found = programs.find(([name, ...rest]) => {
    if (!Bun.which(name!)) return false;
    return Bun.spawnSync([name!, ...rest, "version"], { stdin: "ignore" }).exitCode === 0;
  });
  if (found) return found;
  throw new Error("The tests of the containers need docker compose, and there is none");
}

/** Bun's and PostgreSQL's, as the Dockerfile names them. */
function baseImages(): string[] {
  const text = readFileSync(join(root, "Dockerfile"), "utf8");
  const images = [...text.matchAll(/^FROM (\S+:\S+)/gm)].map(([, image]) => image!);
  return ["oven/bun:", "postgres:"].map((name) => images.find((image) => image.startsWith(name))!);
}
