import type { Environment } from "../platform/variable.ts";
import type { Io } from "./io.ts";

/** What `svc up` stores in the data directory while it runs, readable by its user only. */
export interface RunningTrial {
  pid: number;
  url: string;
  /** The configuration of its server and worker. */
  environment: Environment;
}

/** The data directory of `svc up` in the clone. */
const trialFolder = ".svc";

/** Each of them chooses a database, and so takes precedence over the trial. */
const choices = ["SVC_DATABASE_URL", "SVC_DATABASE_DIRECT_URL"].flatMap((name) => [name, `${name}_FILE`]);

/**
 * The configuration of an administrative command: the environment, on top of `.env` in the working directory, on top of the
 * trial that runs there. The trial is ignored if a database is configured. Prints to stderr that it uses the trial.
 *
 * @throws ConfigurationError if `.env` or the file of the trial cannot be read
 */
export async function serviceEnvironment(
  io: Pick<Io, "env" | "stderr">,
): Promise<{ environment: Environment; trial?: RunningTrial }> {
  const { layered, readEnvironment } = await import("../platform/environment.ts");
  const explicit = readEnvironment(io.env);
  if (choices.some((name) => explicit[name]?.trim())) return { environment: explicit };
  const { runningTrial } = await import("./up/lock.ts");
  const trial = runningTrial(trialFolder);
  if (!trial) return { environment: explicit };
  io.stderr.write(`svc: using the trial on ${trial.url} (pid ${trial.pid})\n`);
  return { environment: layered(explicit, trial.environment), trial };
}
