import { hostname } from "node:os";
import { and, eq, gt } from "drizzle-orm";
import { databaseClock, fromNow } from "../../core/database_clock.ts";
import { goneSeconds } from "../../core/schedule/heartbeat.ts";
import { openDatabase } from "../../drizzle/client.ts";
import { worker } from "../../drizzle/schema/index.ts";
import { Unavailable } from "../../platform/errors.ts";

const deadlineSeconds = 60;
const pauseMilliseconds = 25;
/** A starting program may accept a connection and never answer. */
const answerMilliseconds = 2000;

/** Polls `url` until it answers 200. @throws Unavailable, with the last answer, after a minute */
export async function untilReady(
  name: string,
  url: string,
  signal: AbortSignal,
  tls?: BunFetchRequestInitTLS,
): Promise<void> {
  const deadline = performance.now() + deadlineSeconds * 1000;
  let last = "no answer";
  while (performance.now() < deadline) {
    signal.throwIfAborted();
    try {
      const patience = AbortSignal.any([signal, AbortSignal.timeout(answerMilliseconds)]);
      const { status } = await fetch(url, { signal: patience, redirect: "manual", proxy: "", tls });
      if (status === 200) return;
      last = `HTTP ${status}`;
    } catch {
      last = "no answer";
    }
    await Bun.sleep(pauseMilliseconds);
  }
  throw new Unavailable(`${name} is not ready after ${deadlineSeconds} s (${url}: ${last})`);
}

/** Waits for the first heartbeat of the worker with this pid. @throws Unavailable after a minute */
export async function untilWorks(databaseUrl: string, pid: number, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + deadlineSeconds * 1000;
  const { db, close } = openDatabase(databaseUrl, 1);
  // A killed worker may have had the same pid.
  const isIt = and(
    eq(worker.pid, pid),
    eq(worker.host, hostname()),
    gt(worker.seenAt, fromNow(databaseClock, -goneSeconds)),
  );
  try {
    while ((await db.$count(worker, isIt)) === 0) {
      signal.throwIfAborted();
      if (performance.now() > deadline)
        throw new Unavailable(`The worker is not ready after ${deadlineSeconds} s`);
      await Bun.sleep(pauseMilliseconds);
    }
  } finally {
    await close();
  }
}
