import { Forbidden, NotFound, type SvcError, Unavailable } from "../../platform/errors.ts";
import { type Challenge, type Decision, readDecision } from "../client/answer.ts";
import { type Answer, NetworkFault, problem, request, retryAfter } from "../client/request.ts";
import type { Server } from "../client/server.ts";
import { machineClock } from "../client/server_clock.ts";
import type { Io } from "../io.ts";

type Success = Extract<Decision, { status: "success" }>;

/** Seconds for which the server is asked to hold a poll (`Prefer: wait`, RFC 7240 4.3). */
const HOLD = 25;
/** Seconds after the lifetime in which the server may still report the outcome. */
const GRACE = 2;

/**
 * Polls until the sign-in is decided. Network faults are retried with backoff during the lifetime of the sign-in; `note`
 * is called for the first one. The server has answered before, so an answer that is not from svc is such a fault: this
 * machine has changed to a network with a sign-in page, or the server restarts behind a proxy.
 *
 * @throws SvcError with a specific message for denied, expired and unknown.
 */
export async function awaitDecision(
  io: Io,
  server: Server,
  challenge: Challenge,
  { verifier, signal, note }: { verifier: string; signal: AbortSignal; note: (line: string) => void },
): Promise<Success> {
  // Each step counts for no longer than it can take: somebody may set the clock of this machine meanwhile.
  let left = challenge.lifetime + GRACE;
  const clock = machineClock(io);
  const headers: Record<string, string> = challenge.bound
    ? { authorization: `Challenge ${verifier}`, prefer: `wait=${HOLD}` }
    : {};
  let faults = 0;
  for (;;) {
    if (left <= 0) throw verdict("expired");
    const started = clock.now().getTime();
    const timeout = Math.min(challenge.bound ? HOLD + 10 : 10, left);
    let pause = challenge.interval;
    let answer: Answer | undefined;
    try {
      answer = await request(io, server, challenge.pollingUrl, { headers, signal, timeout });
      if (answer.status >= 500) throw problem(answer, server);
      if (answer.status !== 429 && !isPollAnswer(answer))
        throw new NetworkFault(`${server.base} answered HTTP ${answer.status} with something not from svc`);
      faults = 0;
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      answer = undefined;
      if (faults++ === 0) note(`${error.detail}; trying again`);
      pause = backoff(faults);
    }
    if (answer?.status === 429) {
      pause = Math.max(retryAfter(answer.headers) ?? 0, pause);
    } else if (answer !== undefined) {
      const decision = readDecision(answer.body, io.clock.now(), server);
      if (decision.status === "success") return decision;
      if (decision.status !== "pending") throw verdict(decision.status);
    }
    // The interval counts from the start of a poll, so one that was held longer is followed immediately.
    const took = Math.min(Math.max(0, (clock.now().getTime() - started) / 1000), timeout);
    const rest = Math.max(0, Math.min(pause, left) - took);
    await io.sleep(rest * 1000, signal);
    left -= took + rest;
  }
}

/** The HTTP status of each final answer (docs/protocol.md). */
const finalStatus: Record<string, number> = { denied: 403, expired: 410, unknown: 404 };

function isPollAnswer({ status, body }: Answer): boolean {
  if (body.status === "pending") return true;
  if (body.status === "success") return typeof body.encoded_jwt === "string";
  return finalStatus[String(body.status)] === status;
}

/** Seconds before the next attempt after this many consecutive errors: 0.5, 1, 2, 4, 8, 8, ... */
export function backoff(faults: number): number {
  return Math.min(0.5 * 2 ** (faults - 1), 8);
}

function verdict(status: "expired" | "denied" | "unknown"): SvcError {
  switch (status) {
    case "denied":
      return new Forbidden("the sign-in was denied in the browser");
    case "expired":
      return new Unavailable("the sign-in was not approved in time; run svc login again");
    case "unknown":
      return new NotFound("the server does not know this sign-in; run svc login again");
  }
}
