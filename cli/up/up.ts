import { SvcError } from "../../platform/errors.ts";
import { Interrupted } from "../errors.ts";
import type { Io } from "../io.ts";
import { shellWord } from "../text.ts";
import { type DirectoryLock, lockDirectory } from "./lock.ts";
import { chooseFreePort, portFault } from "./ports.ts";
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
  await assertPortsFree(settings, options);
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

/**
 * Checked before anything is started, so that an error has no partial effects.
 * @throws SvcError with all ports that are in use, and the command that avoids them
 */
async function assertPortsFree(settings: Settings, options: UpOptions): Promise<void> {
  const { host, port, mtls, idpPort, databasePort, startsIdp, startsDatabase } = settings;
  const local = "127.0.0.1";
  const ports: [option: string, host: string, port: number][] = [["--port", host, port]];
  if (startsIdp) ports.push(["--idp-port", local, idpPort]);
  if (mtls) ports.push(["--mtls-port", host, mtls.port]);
  if (startsDatabase && databasePort) ports.push(["--database-port", local, databasePort]);
  const faults: string[] = [];
  const words = ["npm start --"];
  if (host !== local) words.push("--host", shellWord(host));
  if (options.dataDir) words.push("--data-dir", shellWord(options.dataDir));
  if (mtls) words.push("--mtls");
  if (!options.example) words.push("--no-example");
  for (const [option, host, port] of ports) {
    const fault = await portFault(host, port);
    if (fault) faults.push(fault);
    words.push(option, String(fault ? await nextFreePort(host, port) : port));
  }
  if (faults.length > 0) throw new SvcError("configuration", `${faults.join(". ")}: ${words.join(" ")}`);
}

/** A round distance away, so that one can remember it. */
async function nextFreePort(host: string, taken: number): Promise<number> {
  for (let port = taken + 1000; port < 65_536; port++)
    if ((await portFault(host, port)) === undefined) return port;
  return chooseFreePort(host);
}
