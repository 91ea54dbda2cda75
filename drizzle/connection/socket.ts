import { Socket } from "node:net";

interface SocketOptions {
  /** Closes the connection when nothing was sent or received for this long. */
  silenceSeconds?: number;
  onClose?: () => void;
}

/** The socket of a connection that postgres.js does not open itself. */
export class DatabaseSocket extends Socket {
  /** How it ended before postgres.js had sent its first message. */
  #early: (() => void)[] | undefined = [];

  constructor(private readonly options: SocketOptions = {}) {
    super();
    if (options.silenceSeconds) this.setTimeout(options.silenceSeconds * 1000);
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
    if (event === "timeout") this.destroy();
    if (event === "close") this.options?.onClose?.();
    // postgres.js sends its first message in the next turn, connected or not. If the socket closed before that, the
    // message would stay queued, and the connection opened in its place would never send one.
    if (this.#early && (event === "error" || event === "close")) {
      this.#early.push(() => super.emit(event, ...args));
      return true;
    }
    return super.emit(event, ...args);
  }

  /** Connects, and says to which host, which postgres.js reads from here for TLS. */
  to({ path, host, port }: { path?: string | false; host: string; port: number }): this {
    if (path) this.connect(path);
    else this.connect(port, host);
    return Object.assign(this, { host, port });
  }

  /** Fails like a socket that cannot connect. */
  fail(error: Error): this {
    this.write = () => true;
    this.destroy(error);
    return this;
  }
}
