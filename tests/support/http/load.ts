import { connect, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";

interface LoadOptions {
  port: number;
  clients: number;
  /** Which clients keep their connections, like a browser or a proxy. */
  keepAlive?: "none" | "half" | "all";
  /** Milliseconds between the requests of each client. */
  pause?: number;
  /** For a port with TLS. */
  tls?: ConnectionOptions;
  /** The path of each request; requests are numbered from 1. */
  path?: (request: number) => string;
}

/** A request without an answer of 200. */
interface Failure {
  request: number;
  reason: string;
}

/**
 * Clients that each send one request after the other to the application of `appFolder`. No request is sent twice, whereas
 * fetch repeats one whose connection ended before the answer, which hides that a server cut it off.
 */
export class Load {
  readonly failures: Failure[] = [];
  /** The processes that have answered. */
  readonly pids = new Set<number>();
  answered = 0;
  #requests = 0;
  #ended = false;
  readonly #running: Promise<void>[];

  constructor(private readonly options: LoadOptions) {
    const { clients, keepAlive = "half" } = options;
    const keeps = (at: number) => keepAlive === "all" || (keepAlive === "half" && at % 2 === 0);
    this.#running = Array.from({ length: clients }, (_, at) => this.#client(keeps(at)));
  }

  async end(): Promise<void> {
    this.#ended = true;
    await Promise.all(this.#running);
  }

  async #client(keepAlive: boolean): Promise<void> {
    const { pause = 0, path = () => "/" } = this.options;
    let connection: Connection | undefined;
    while (!this.#ended) {
      this.#requests += 1;
      const request = this.#requests;
      try {
        if (!connection?.isOpen) connection = await Connection.open(this.options);
        const { status, body, last } = await connection.get(path(request), keepAlive);
        if (last || !keepAlive) {
          connection.close();
          connection = undefined;
        }
        if (status !== 200) throw new Error(`status ${status}`);
        this.pids.add((JSON.parse(body) as { pid: number }).pid);
        this.answered += 1;
      } catch (error) {
        connection?.close();
        connection = undefined;
        this.failures.push({ request, reason: (error as Error).message });
      }
      if (pause > 0) await Bun.sleep(pause);
    }
    connection?.close();
  }
}

class Connection {
  #received = "";
  #fault: Error | undefined;
  #wake = () => {};

  private constructor(private readonly socket: Socket) {
    const end = (fault: Error) => {
      this.#fault ??= fault;
      this.#wake();
    };
    socket
      .on("data", (chunk: Buffer) => {
        this.#received += chunk.toString("latin1");
        this.#wake();
      })
      .on("error", end)
      .on("close", () => end(new Error("the connection was closed")));
  }

  /** @throws Error */
  static async open({ port, tls }: LoadOptions): Promise<Connection> {
    const place = { host: "127.0.0.1", port };
    const socket = tls ? connectTls({ ...place, ...tls }) : connect(place);
    const connection = new Connection(socket);
    let ready = false;
    socket.once(tls ? "secureConnect" : "connect", () => {
      ready = true;
      connection.#wake();
    });
    await connection.#until(() => ready);
    return connection;
  }

  get isOpen(): boolean {
    return this.#fault === undefined;
  }

  /** @throws Error if the connection ends before the answer */
  async get(path: string, keepAlive: boolean): Promise<{ status: number; body: string; last: boolean }> {
    const lines = [`GET ${path} HTTP/1.1`, "Host: localhost", ...(keepAlive ? [] : ["Connection: close"])];
    this.socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    await this.#until(() => this.#received.includes("\r\n\r\n"));
    const start = this.#received.indexOf("\r\n\r\n") + 4;
    const head = this.#received.slice(0, start);
    const end = start + Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
    await this.#until(() => this.#received.length >= end);
    const body = this.#received.slice(start, end);
    this.#received = this.#received.slice(end);
    return { status: Number(head.split(" ")[1]), body, last: /\r\nconnection: close\r\n/i.test(head) };
  }

  close(): void {
    this.socket.destroy();
  }

  async #until(done: () => boolean): Promise<void> {
    while (!done()) {
      if (this.#fault) throw this.#fault;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
