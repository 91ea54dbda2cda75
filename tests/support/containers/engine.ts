import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "../../..");
/** Next to the clone on machines that cannot pull images: starts an engine, and builds stand-ins for the public images. */
const starter = join(root, "../shared/containers/engine.sh");

/** There is no engine, and none can be started. Other problems with an engine are ordinary errors. */
export class NoEngineError extends Error {
  constructor(reason: string) {
    const line = reason.replaceAll(/\s*\n\s*/g, "; ");
    super(`The tests of the containers need a Docker engine, and none can be started here: ${line}`);
  }
}

/**
 * Ensures that a Docker engine is running. Disposing stops it if this function started it.
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
    // Installed but not running: the kernel or the sandbox refused it.
    if (Bun.which("dockerd") && answer().exitCode !== 0) throw new NoEngineError(started.stderr);
    throw new Error(`The Docker engine cannot be used:\n${started.stdout}${started.stderr}`.trim());
  }
  return { [Symbol.dispose]: () => void (wasThere || run("bash", start, "stop")) };
}

/** The engine's version information. */
function answer(): Outcome {
  if (Bun.which("docker")) return run("docker", "info");
  return { exitCode: 1, stdout: "", stderr: "there is no docker on the PATH" };
}

export interface Outcome {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** Runs a program until it exits. */
export function run(...command: string[]): Outcome {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { stdin: "ignore" });
  return { exitCode, stdout: stdout.toString().trim(), stderr: stderr.toString().trim() };
}

/** `docker compose`, or the older `docker-compose`. @throws Error if neither exists */
export function composeProgram(): string[] {
  const programs = [["docker", "compose"], ["docker-compose"]];
  const found = programs.find(([name, ...rest]) => {
    if (!Bun.which(name!)) return false;
    return Bun.spawnSync([name!, ...rest, "version"], { stdin: "ignore" }).exitCode === 0;
  });
  if (found) return found;
  throw new Error("The tests of the containers need docker compose, and there is none");
}

/** The base images of Bun and PostgreSQL, as named in the Dockerfile and in compose.yaml. */
function baseImages(): string[] {
  const named = (file: string, pattern: RegExp) => {
    const [, image] = readFileSync(join(root, file), "utf8").match(pattern) ?? [];
    if (image === undefined) throw new Error(`${file} does not name a base image: ${pattern}`);
    return image;
  };
  return [named("Dockerfile", /^FROM (oven\/bun:\S+)/m), named("compose.yaml", /^ *image: (postgres:\S+)/m)];
}
