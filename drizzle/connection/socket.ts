import { Socket } from "node:net";
import tls from "node:tls";
import { type DatabasePlace, noteDatabase, notePlace } from "../error_place.ts";

type Emit = (event: string | symbol, ...args: unknown[]) => boolean;

/**
 * Emits an error and the end together, while Bun's sockets close some time after an error. In between, postgres.js would
 * send another statement there, never answer it, and give it the answer to a later one.
 *
 * A connection that the server closes counts as an error, too. Otherwise, if a server closes each connection before
 * authentication, as a proxy does while PostgreSQL is down, postgres.js would reconnect without a pause.
 *
 * So does a fatal error of PostgreSQL, which postgres.js would keep, and report to the first statement of the connection
 * that it opens in place of this one, however much later.
 *
 * postgres.js hears of the end only after it has written what it has buffered.
 */
function endTogether(socket: Socket, emit: Emit, connection: DatabaseSocket): Emit {
  let hasFailed = false;
  let isLeft = false;
  const fail = (error: unknown) => {
    hasFailed = true;
    if (error instanceof Error) notePlace(error, connection);
    connection.afterWriting(() => {
      // Below TLS, nobody may listen.
      if (socket.listenerCount("error") > 0) emit("error", error);
      emit("close", true);
    });
    return true;
  };
  const receive = (received: Buffer) => {
    receiving = connection;
    try {
      return emit("data", received);
    } finally {
      receiving = undefined;
    }
  };
  return (event, ...args) => {
    if (event === "data" && !hasFailed) {
      const received = args[0] as Buffer;
      const start = startOfFatalError(received);
      if (start !== undefined) {
        const error = readError(received.subarray(start));
        if (start === 0) {
          socket.destroy();
          return fail(error);
        }
        hasFailed = true;
        receive(received.subarray(0, start));
        // What waits for these answers goes on first, and what it sends is written: a transaction whose BEGIN was just
        // answered would otherwise not hear that its connection has ended, and write to none.
        setImmediate(() =>
          setImmediate(() => {
            socket.destroy();
            fail(error);
          }),
        );
        return true;
      }
    }
    if (event === "data") return receive(args[0] as Buffer);
    if (event === "end" && !socket.writableEnded) isLeft = true;
    if (event !== "error" && event !== "close") return emit(event, ...args);
    if (hasFailed) return true;
    if (event === "error") return fail(args[0]);
    if (isLeft) return fail(closedByServer());
    hasFailed = true;
    connection.afterWriting(() => emit(event, ...args));
    return true;
  };
}

const closedByServer = () =>
  Object.assign(new Error("the server closed the connection"), { code: "CONNECTION_CLOSED" });

/** The socket whose answer postgres.js handles now. */
let receiving: DatabaseSocket | undefined;
const sockets = new WeakMap<object, DatabaseSocket>();

/**
 * postgres.js has buffered a statement. The first one of a connection follows an answer of its socket.
 * @param backend the same object for all statements of a connection
 */
export function noteBuffered(backend: object): void {
  if (receiving) sockets.set(backend, receiving);
  sockets.get(backend)?.noteBuffered();
}

/** Where the message begins with which PostgreSQL ends a connection, the last one that it sends. */
function startOfFatalError(received: Buffer): number | undefined {
  // An ErrorResponse ends with an empty field (https://www.postgresql.org/docs/current/protocol-message-formats.html).
  if (received.at(-1) !== 0 || received.at(-2) !== 0) return undefined;
  const start = received.lastIndexOf("E\0\0", received.length - 5);
  if (start < 0 || received.readUInt32BE(start + 1) !== received.length - start - 1) return undefined;
  return /\0V(FATAL|PANIC)\0/.test(received.toString("latin1", start)) ? start : undefined;
}

/** The error that postgres.js would raise, with the fields that we read. */
function readError(message: Buffer): Error {
  const fields = message.toString("utf8", 5).split("\0");
  const field = (type: string) => fields.find((one) => one.startsWith(type))?.slice(1);
  const known = { name: "PostgresError", severity: field("V"), code: field("C") };
  return Object.assign(new Error(field("M")), known);
}

// postgres.js opens the TLS socket above one of ours itself, and has no setting for this.
const { connect } = tls;
tls.connect = ((...args: Parameters<typeof connect>) => {
  const socket = connect(...args);
  const { socket: below } = Object(args[0]) as tls.ConnectionOptions;
  if (below instanceof DatabaseSocket) {
    socket.emit = endTogether(socket, socket.emit.bind(socket), below);
    beforeWriting(socket, () => below.noteWritten());
    below.silence?.watch(socket);
  }
  return socket;
}) as typeof connect;

/** An accessor, because Bun assigns another `write` when the socket connects, and when it ends. */
function beforeWriting(socket: Socket, note: () => void): void {
  let { write } = socket;
  const noting = ((...args: Parameters<typeof write>) => {
    note();
    return write.apply(socket, args);
  }) as typeof write;
  Object.defineProperty(socket, "write", {
    configurable: true,
    get: () => noting,
    set: (other: typeof write) => {
      write = other;
    },
  });
}

/**
 * Closes a connection that is idle for too long, or on which a message has waited too long for any answer. The timeout of
 * a socket would also start again with each further message, and a busy server sends them more often than it ends.
 */
class SilenceLimit {
  readonly #timer: Timer;
  #isAsked = false;

  constructor(seconds: number, close: () => void) {
    this.#timer = setTimeout(close, seconds * 1000).unref();
  }

  noteWritten(): void {
    if (!this.#isAsked) this.#timer.refresh();
    this.#isAsked = true;
  }

  /** Follows what is received on the connection's socket, or on the one above it for TLS. */
  watch(socket: Socket): void {
    socket.on("data", () => {
      this.#isAsked = false;
      this.#timer.refresh();
    });
    socket.on("close", () => clearTimeout(this.#timer));
  }
}

/** A host without a route or a name, as of a machine that has lost its network. These errors come at once. */
const unreachableCodes = new Set(["ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

export function isUnreachable(error: unknown): boolean {
  const { code, cause } = Object(error) as { code?: string; cause?: unknown };
  return unreachableCodes.has(code ?? "") || (cause !== undefined && isUnreachable(cause));
}

/** Longer than a balancer takes to use another server: docs/scale.md. */
const retryMilliseconds = 8000;
const retryPauseMilliseconds = 200;

/**
 * Repeats attempts to connect for some seconds after a host that was reached before has become unreachable. Requests that
 * need a new connection then wait, as those on open connections do, until the balancer repeats them on another server.
 * A host that was never reached is more likely a wrong address, and later requests need not wait in vain.
 */
export class UnreachableRetry {
  /** Undefined while it can be reached. */
  #since: number | undefined = Number.NEGATIVE_INFINITY;

  /** @param now in milliseconds */
  constructor(private readonly now: () => number = () => performance.now()) {}

  reached(): void {
    this.#since = undefined;
  }

  /** Whether to repeat an attempt that has just failed in this way. */
  isDue(error: unknown): boolean {
    if (!isUnreachable(error)) return false;
    this.#since ??= this.now();
    return this.now() - this.#since < retryMilliseconds;
  }
}

export interface SocketOptions {
  /** Closes the connection when it is idle, or gives no answer, for this long. */
  silenceSeconds?: number;
  retry?: UnreachableRetry;
  onClose?: () => void;
}

/** The socket of a connection that postgres.js does not open itself. */
export class DatabaseSocket extends Socket {
  declare readonly host?: string;
  declare readonly port?: number;
  declare readonly database?: string;
  /** How it ended before postgres.js had sent its first message. */
  #early: (() => void)[] | undefined = [];
  #isRepeated = false;
  #isBuffered = false;
  #onceWritten: (() => void) | undefined;
  readonly #emit = endTogether(this, (event, ...args) => super.emit(event, ...args), this);

  readonly silence: SilenceLimit | undefined;

  constructor(private readonly options: SocketOptions = {}) {
    super();
    beforeWriting(this, () => this.noteWritten());
    const { silenceSeconds } = options;
    this.silence = silenceSeconds ? new SilenceLimit(silenceSeconds, () => this.destroy()) : undefined;
    this.silence?.watch(this);
    setImmediate(() =>
      setImmediate(() => {
        const early = this.#early ?? [];
        this.#early = undefined;
        for (const tell of early) tell();
      }),
    );
  }

  /** Not by listeners, which postgres.js removes from the socket below TLS. */
  override emit(event: string | symbol, ...args: unknown[]): boolean {
    if (event === "close") this.options?.onClose?.();
    if (event === "connect") this.options?.retry?.reached();
    if (event === "error" && !this.#isRepeated && this.options?.retry?.isDue(args[0])) {
      this.#isRepeated = true;
      // After a close without an error, postgres.js connects again for the statement that waits for the connection.
      setTimeout(() => this.#emit("close", false), retryPauseMilliseconds);
    }
    if (this.#isRepeated && (event === "error" || event === "close")) return true;
    // postgres.js sends its first message in the next turn, connected or not. If the socket closed before that, the
    // message would stay queued, and the connection opened in its place would never send one.
    if (this.#early && (event === "error" || event === "close")) {
      this.#early.push(() => this.#emit(event, ...args));
      return true;
    }
    return this.#emit(event, ...args);
  }

  noteBuffered(): void {
    this.#isBuffered = true;
  }

  noteWritten(): void {
    this.silence?.noteWritten();
    this.#isBuffered = false;
    // Before anything else can be buffered.
    if (this.#onceWritten) queueMicrotask(this.#onceWritten);
    this.#onceWritten = undefined;
  }

  /**
   * Calls `end` once postgres.js has no statement in its buffer, which it writes in the next turn. If it heard of the end
   * before, it would never write on the connection that it opens in place of this one, or write to no socket at all.
   */
  afterWriting(end: () => void): void {
    setImmediate(() => {
      if (!this.#isBuffered) return end();
      let hasEnded = false;
      const once = () => {
        if (!hasEnded) end();
        hasEnded = true;
      };
      this.#onceWritten = once;
      // Or postgres.js has closed the connection itself, and writes no more.
      setImmediate(() => setImmediate(once));
    });
  }

  /** Connects, and says to which host, which postgres.js reads from here for TLS. */
  to({ host, port, database }: DatabasePlace): this {
    noteDatabase({ host, port, database });
    if (host.startsWith("/")) this.connect(`${host}/.s.PGSQL.${port}`);
    else this.connect(port, host);
    return Object.assign(this, { host, port, database });
  }

  /** Fails like a socket that cannot connect. */
  fail(error: Error): this {
    this.write = () => true;
    this.destroy(error);
    return this;
  }
}
