import { SvcError } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { Interrupted } from "../errors.ts";
import type { Io } from "../io.ts";
import { type DirectoryLock, lockDirectory } from "./lock.ts";
import { assertFree } from "./ports.ts";
import { type Progress, progressOn, summary } from "./report.ts";
import { decide, type Settings, type UpOptions } from "./settings.ts";
import { awaitStop, type Stop } from "./signals.ts";
import { start } from "./start.ts";

/**
 * Starts everything that a trial needs and runs it until a signal comes or a part fails.
 *
 * @throws Interrupted at Ctrl-C; a SvcError when a part cannot start or ends by itself, with its reason
 */
export async function up(
  options: UpOptions,
  callers: Environment,
  io: Pick<Io, "stdout" | "stderr">,
): Promise<void> {
  using stop = awaitStop(callers);
  const settings = await decide(options, callers);
  using lock = lockDirectory(settings.dataDir, settings.publicUrl);
  await assertPortsFree(settings);
  const reason = await run(settings, lock, stop.reason, io, progressOn(io.stderr));
  if (reason === "SIGINT") throw new Interrupted();
  if (reason === "starter gone")
    throw new SvcError("unavailable", "Stopped, because the process that started svc up has ended");
  // As any program that does not catch the signal: a shell shows 128 + its number.
  lock[Symbol.dispose]();
  stop[Symbol.dispose]();
  process.kill(process.pid, reason);
  await Bun.sleep(1000);
}

async function run(
  settings: Settings,
  lock: DirectoryLock,
  stopped: Promise<Stop>,
  io: Pick<Io, "stdout">,
  progress: Progress,
): Promise<Stop> {
  const abort = new AbortController();
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => {});
  // Left in reverse order: the database ends last.
  await using parts = new AsyncDisposableStack();
  const starting = start(settings, {
    ...{ parts, progress, signal: abort.signal, fail: failure.reject },
    publish: (environment) => lock.publish(environment),
  });
  try {
    const early = await Promise.race([stopped, failure.promise, starting]);
    if (early) return early;
    io.stdout.write(summary(settings, progress.seconds()));
    return await Promise.race([stopped, failure.promise]);
  } finally {
    abort.abort();
    progress.say("Stopping ...");
    // Nothing may be started behind the back of what stops it.
    await starting.catch(() => {});
  }
}

/** All of them before anything is started, so that a refusal leaves nothing behind. */
async function assertPortsFree(settings: Settings): Promise<void> {
  const { host, port, idpPort, databasePort, startsIdp, startsDatabase } = settings;
  await assertFree(host, port, "the server", "--port");
  if (startsIdp) await assertFree("127.0.0.1", idpPort, "the trial sign-in provider", "--idp-port");
  if (startsDatabase && databasePort)
    await assertFree("127.0.0.1", databasePort, "PostgreSQL", "--database-port");
}
