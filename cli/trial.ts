import type { Environment } from "../platform/variable.ts";
import type { Io } from "./io.ts";

/** What `svc up` keeps in the data directory while it runs, for its user alone. */
export interface RunningTrial {
  pid: number;
  url: string;
  /** The configuration of its server and worker. */
  environment: Environment;
}

/** Where `svc up` keeps everything, in the folder of the clone. */
export const trialFolder = ".svc";

/** Any of them chooses a database, so that the trial has no say. */
const choices = ["SVC_DATABASE_URL", "SVC_DATABASE_DIRECT_URL"].flatMap((name) => [name, `${name}_FILE`]);

/**
 * The configuration that an administrative command works with: the environment, on top of `.env` in the working
 * directory, on top of the trial that runs in it. A database that is named explicitly leaves the trial out. Says on stderr
 * that the trial is used.
 *
 * @throws ConfigurationError when `.env` or the running trial's file cannot be read
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
