import { Unavailable } from "../../core/errors.ts";

const deadlineSeconds = 60;
const pauseMilliseconds = 25;
/** A program that is just starting may take a connection and forget about it. */
const answerMilliseconds = 2000;

/** Asks `url` until it answers 200. @throws Unavailable, with its last answer, after a minute */
export async function untilReady(name: string, url: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + deadlineSeconds * 1000;
  let last = "no answer";
  while (performance.now() < deadline) {
    signal.throwIfAborted();
    try {
      const patience = AbortSignal.any([signal, AbortSignal.timeout(answerMilliseconds)]);
      const { status } = await fetch(url, { signal: patience, redirect: "manual", proxy: "" });
      if (status === 200) return;
      last = `HTTP ${status}`;
    } catch {
      last = "no answer";
    }
    await Bun.sleep(pauseMilliseconds);
  }
  throw new Unavailable(`${name} is not ready after ${deadlineSeconds} s (${url}: ${last})`);
}
