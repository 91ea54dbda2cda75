import { SvcError } from "../../platform/errors.ts";
import { Interrupted } from "../errors.ts";
import type { Io } from "../io.ts";
import { type DirectoryLock, lockDirectory } from "./lock.ts";
import { assertFree } from "./ports.ts";
import { type Progress, progressOn, summary } from "./report.ts";
import { decide, type Settings, type UpOptions } from "./settings.ts";
import { awaitStop, type Stop } from "./signals.ts";
import { start } from "./start.ts";

/**
 * Runs a trial until a signal arrives or a process fails.
 *
 * @throws Interrupted at Ctrl-C; SvcError with the reason if a process cannot start, or exits
 */
export async function up(options: UpOptions, io: Pick<Io, "stdout" | "stderr" | "env">): Promise<void> {
  using stop = awaitStop(io.env);
  const settings = await decide(options, io.env);
  using lock = lockDirectory(settings.dataDir, settings.publicUrl);
  await assertPortsFree(settings);
  const reason = await run(settings, lock, stop.reason, io, progressOn(io));
  if (reason === "SIGINT") throw new Interrupted();
  if (reason === "starter gone")
    throw new SvcError("unavailable", "Stopped, because the process that started svc up has ended");
  // End by the signal, so that the shell shows 128 + its number.
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
  // Disposed in reverse order: the database stops last.
  await using parts = new AsyncDisposableStack();
  const starting = start(settings, {
    parts,
    progress,
    signal: abort.signal,
    fail: failure.reject,
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
    // Wait, so that nothing is started after the others were stopped.
    await starting.catch(() => {});
  }
}

/** Checked before anything is started, so that an error has no partial effects. */
async function assertPortsFree(settings: Settings): Promise<void> {
  const { host, port, mtls, idpPort, databasePort, startsIdp, startsDatabase } = settings;
  await assertFree(host, port, "--port");
  if (mtls) await assertFree(host, mtls.port, "--mtls-port");
  if (startsIdp) await assertFree("127.0.0.1", idpPort, "--idp-port");
  if (startsDatabase && databasePort) await assertFree("127.0.0.1", databasePort, "--database-port");
}
