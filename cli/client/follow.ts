import { Refused, TooManyRequests, Unauthenticated, Unavailable } from "../../platform/errors.ts";
import { Interrupted } from "../errors.ts";
import type { Io } from "../io.ts";
import { NetworkFault, openStream } from "./request.ts";
import { renewInTime, renewSession } from "./session.ts";
import { InvalidStream, type SseMessage, SseParser } from "./sse.ts";
import { authorization, type Session } from "./token.ts";

// Follows a stream of the server over as many connections as it takes. Nothing is lost, because each connection resumes
// after the last message of the previous one.

export type News =
  | { type: "open" }
  | { type: "message"; message: SseMessage }
  /** The connection was lost; the next one is tried after so many milliseconds. */
  | { type: "lost"; reason: string; delay: number }
  /** The token has expired. The next connection follows a new sign-in of the same user. */
  | { type: "expired" };

export interface Followed {
  io: Io;
  session: Session;
  /** From the root of the server's API. */
  path: string;
  /** The id after which the stream begins. */
  after?: string;
  signal: AbortSignal;
  random?: () => number;
}

/** The server sends a heartbeat every 15 s. */
const longestSilence = 45_000;
/** Also the minimum: if the server said 0, failures would never lead to longer delays. */
const firstDelay = 500;
const longestDelay = 30_000;
/** A connection that lasted this long resets the delay. */
const goodConnection = 5_000;
/** The server's clock is known to a second. */
const expirySlack = 5_000;
/** How often to look for a new sign-in. Reading a keychain may ask the user. */
const signInCheck = { file: 2_000, keychain: 10_000 };

/**
 * Reconnects until the signal aborts, or until the server refuses.
 *
 * @throws Unauthenticated, Forbidden, NotFound and other refusals of the server, Interrupted
 */
export async function* follow(options: Followed): AsyncGenerator<News> {
  const { io, session, path, signal, random = Math.random } = options;
  let after = options.after ?? "";
  let base = firstDelay;
  let failures = 0;
  let hasOpened = false;
  for (;;) {
    const connection = new AbortController();
    const parser = new SseParser(after);
    let openedAt: number | undefined;
    let error: unknown;
    try {
      await renewInTime(session, io);
      const response = await openStream(io, session.endpoint, `${session.endpoint.base}${path}`, {
        headers: {
          ...authorization(session),
          ...(after === "" ? {} : { "last-event-id": after }),
        },
        signal: AbortSignal.any([signal, connection.signal]),
      });
      hasOpened = true;
      openedAt = io.clock.now().getTime();
      yield { type: "open" };
      for await (const chunk of chunksOf(response, options, connection)) {
        for (const message of read(parser, chunk, session)) {
          failures = 0;
          yield { type: "message", message };
        }
        after = parser.lastEventId;
        await renewInTime(session, io);
      }
    } catch (caught) {
      if (signal.aborted) throw new Interrupted();
      error = caught;
    } finally {
      connection.abort();
    }
    if (signal.aborted) throw new Interrupted();
    // A stream ends with its token; the user may have signed in again in another terminal.
    if (error instanceof Unauthenticated && (await renewSession(session, io))) continue;
    if (error instanceof Unauthenticated && hasOpened && mayReturn(options)) {
      yield { type: "expired" };
      await untilSignedIn(options);
      continue;
    }
    const lost = lossOf(error, options, hasOpened);
    if (lost === undefined) throw error;
    if (openedAt !== undefined && io.clock.now().getTime() - openedAt >= goodConnection) failures = 0;
    base = Math.min(Math.max(parser.retry ?? base, firstDelay), longestDelay);
    // The jitter keeps the clients of a server that restarts apart.
    const delay = Math.min(base * 2 ** Math.min(failures, 10), longestDelay) * (1 + random() / 2);
    failures += 1;
    const wait = error instanceof TooManyRequests ? error.retryAfter * 1000 : 0;
    const milliseconds = Math.round(Math.max(wait, delay));
    yield { type: "lost", reason: lost, delay: milliseconds };
    await io.sleep(milliseconds, signal);
  }
}

/** Whether the session has expired, and the user can sign in again. If it was revoked instead, they meant to end it. */
function mayReturn({ io, session }: Followed): boolean {
  const isStored = session.source === "file" || session.source === "keychain";
  return isStored && session.expiresAt.getTime() - io.clock.now().getTime() <= expirySlack;
}

/** @throws Interrupted */
async function untilSignedIn({ io, session, signal }: Followed): Promise<void> {
  do {
    await io.sleep(session.source === "keychain" ? signInCheck.keychain : signInCheck.file, signal);
    if (signal.aborted) throw new Interrupted();
    // A file that cannot be read now may be readable later.
  } while (!(await renewSession(session, io).catch(() => false)));
}

/** Returns why a connection was lost. Undefined if the next one would end the same way. */
function lossOf(error: unknown, { session }: Followed, hasOpened: boolean): string | undefined {
  if (error === undefined) return `${session.server.base} ended the connection`;
  if (error instanceof Broken) return error.message;
  if (error instanceof NetworkFault || error instanceof TooManyRequests) return error.detail;
  // For example, a captive portal answers after a laptop has resumed.
  return error instanceof Unavailable && !(error instanceof Refused) && hasOpened ? error.detail : undefined;
}

/** The connection ended before the answer did. */
class Broken extends Error {}

/**
 * Yields the chunks of an answer, and throws if the server is silent for too long. It compares the clock, because timers
 * stop while a laptop sleeps.
 */
async function* chunksOf(
  response: Response,
  { io, session }: Followed,
  connection: AbortController,
): AsyncGenerator<Uint8Array> {
  if (response.body === null) return;
  const { base } = session.server;
  const reader = response.body.getReader();
  let heardAt = io.clock.now().getTime();
  let isSilent = false;
  const watchdog = setInterval(() => {
    // Either way: the clock of this machine may be set back.
    if (Math.abs(io.clock.now().getTime() - heardAt) < longestSilence) return;
    isSilent = true;
    connection.abort();
  }, 1000);
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        const reason = isSilent ? `${base} was silent` : `the connection to ${base} was lost`;
        throw new Broken(reason, { cause: error });
      });
      if (done) return;
      heardAt = io.clock.now().getTime();
      yield value;
    }
  } finally {
    clearInterval(watchdog);
  }
}

/** @throws Refused if it is not a stream of events */
function read(parser: SseParser, chunk: Uint8Array, { server }: Session): SseMessage[] {
  try {
    return parser.push(chunk);
  } catch (error) {
    if (error instanceof InvalidStream) throw new Refused(`${server.base} sent ${error.message}`);
    throw error;
  }
}
