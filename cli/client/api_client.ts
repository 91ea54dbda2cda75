import type { Clock } from "../../platform/clock.ts";
import { Unauthenticated, Unavailable } from "../../platform/errors.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { largestAnswer, problem, type Request, request } from "./request.ts";
import { clockAhead, offsetText } from "./server_clock.ts";
import { currentSession, renewInTime, renewSession } from "./session.ts";
import { authorization, type Session } from "./token.ts";
import { WaitingLine } from "./waiting_line.ts";

const pageSize = 100;
/** Milliseconds. */
const largestSkew = 300_000;

export type Query = Readonly<Record<string, string | undefined>>;

export interface CallOptions {
  /** The `Idempotency-Key`, which makes a repeated POST harmless. */
  key?: string;
  /** Seconds. */
  timeout?: number;
}

/** The API, as the signed-in user. */
export class ApiClient {
  /** Whether something else draws on the terminal. */
  isDrawing = false;
  readonly #waiting: WaitingLine;
  /** By which offset times were parsed before there was a client. */
  readonly #firstAhead: number;

  constructor(
    protected readonly io: Io,
    readonly session: Session,
    readonly signal: AbortSignal,
  ) {
    this.#firstAhead = clockAhead(io);
    this.#waiting = new WaitingLine(io, session.server.base, signal);
  }

  /** As of the last answer. */
  get serverClock(): Clock {
    return this.io.clock;
  }

  /** Runs `work` with the current session; Ctrl-C ends it. @throws Unauthenticated */
  static async within<C, T>(
    this: new (io: Io, session: Session, signal: AbortSignal) => C,
    io: Io,
    work: (client: C) => Promise<T>,
  ): Promise<T> {
    const session = await currentSession(io);
    return io.interruptible((signal) => work(new this(io, session, signal)));
  }

  /** @throws SvcError if the server refuses, with its message */
  async call<T>(
    method: Request["method"],
    path: string,
    body?: unknown,
    options: CallOptions = {},
  ): Promise<T> {
    await renewInTime(this.session, this.io);
    try {
      const answer = await this.callOnce<T>(method, path, body, options);
      // Only now, the server's time may be known.
      await renewInTime(this.session, this.io);
      return answer;
    } catch (error) {
      if (!(error instanceof Unauthenticated && (await renewSession(this.session, this.io)))) throw error;
      return this.callOnce<T>(method, path, body, options);
    }
  }

  private async callOnce<T>(
    method: Request["method"],
    path: string,
    body: unknown,
    { key, timeout }: CallOptions,
  ): Promise<T> {
    const { io, signal } = this;
    const { endpoint } = this.session;
    const headers = {
      ...authorization(this.session),
      ...(key === undefined ? {} : { "idempotency-key": key }),
    };
    const stopWaiting = this.isDrawing ? () => {} : this.#waiting.start();
    const sent = { method, headers, body, signal, timeout, largest: largestAnswer };
    const answer = await request(io, endpoint, `${endpoint.base}${path}`, sent).finally(stopWaiting);
    if (answer.status >= 400) throw problem(answer, endpoint);
    return answer.body as T;
  }

  /**
   * Refuses a time that the user gave relative to now, or without a zone, if it was parsed by a clock of this machine that
   * turned out to be wrong: the timeline would record a wrong time. Call it after a request.
   *
   * @throws UsageError
   */
  checkClock(option: string, text: string): void {
    const ahead = clockAhead(this.io) - this.#firstAhead;
    if (Math.abs(ahead) < largestSkew || /(?:Z|[+-]\d\d:\d\d)$/.test(text.trim())) return;
    throw new UsageError(
      `${option}: the clock of this machine is ${offsetText(ahead)} that of ${this.session.server.base}: give a time with a zone, such as 2026-11-20T14:05:00Z`,
    );
  }

  /** Returns the items of a list: all, or the first ones, at most `most`. */
  async list<T>(path: string, query: Query = {}, most = Number.POSITIVE_INFINITY): Promise<T[]> {
    const items: T[] = [];
    for await (const page of this.pages<T>(path, query, most)) items.push(...page);
    return items;
  }

  /** Like `list`, page by page: a caller that has enough stops reading. */
  async *pages<T>(path: string, query: Query, most: number): AsyncGenerator<T[]> {
    let cursor: string | null = null;
    for (let left = most; left > 0;) {
      const limit = String(Math.min(pageSize, left));
      const text = queryText({ ...query, cursor: cursor ?? undefined, limit });
      const answer: { items: T[]; next_cursor: string | null } = await this.call("GET", `${path}${text}`);
      if (!Array.isArray(answer.items))
        throw new Unavailable(`${this.session.server.base} answered without a list; is it an svc server?`);
      yield answer.items;
      left -= answer.items.length;
      // If the server repeated a cursor, this would never end.
      if ((answer.next_cursor ?? null) === null || answer.next_cursor === cursor) return;
      cursor = answer.next_cursor;
    }
  }
}

/** Returns `?a=1&b=2`, without undefined values. */
export function queryText(query: Query): string {
  const given = Object.entries(query).filter((one): one is [string, string] => one[1] !== undefined);
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}
