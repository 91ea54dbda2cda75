import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "..");
/** Beside the clone on machines that can pull no image: starts an engine, and makes stand-ins for the public images. */
const starter = join(root, "../shared/containers/engine.sh");

/**
 * Makes sure that there is a Docker engine for the tests that need one.
 * @throws Error, with the reason
 */
export function ensureEngine(): void {
  if (existsSync(starter)) {
    const { exitCode, stdout, stderr } = Bun.spawnSync(["bash", starter, "start", ...baseImages()], {
      stdin: "ignore",
    });
    if (exitCode !== 0) throw new Error(`The Docker engine cannot be started:\n${stdout}${stderr}`.trim());
    return;
  }
  const why = "The tests of the containers need a Docker engine";
  if (!Bun.which("docker")) throw new Error(`${why}, and there is no docker on the PATH`);
  const { exitCode, stderr } = Bun.spawnSync(["docker", "info"], { stdin: "ignore" });
  if (exitCode !== 0) throw new Error(`${why}, and docker info says: ${stderr}`.trim());
  composeProgram();
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
