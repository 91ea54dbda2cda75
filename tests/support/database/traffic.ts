import { connect, createServer, type Socket } from "node:net";
import { hintStatement } from "../../../drizzle/connection/notify.ts";
import { listen } from "../listen.ts";

/** What clients have cost a database so far, without hints, because their number depends on the duration of writes. */
interface Traffic {
  /** Waits for an answer: statements that are sent without waiting for each other count once. */
  roundTrips: number;
  /** Of transactions, and of statements outside them that write. */
  commits: number;
}

export interface WatchedDatabase extends Traffic {
  /** The address through which traffic is counted. */
  url: string;
  /** Starts again from zero. */
  reset(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Counts the traffic of clients of a database without TLS, by PostgreSQL's protocol. */
export async function watchDatabase(databaseUrl: string): Promise<WatchedDatabase> {
  const { hostname, port } = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const counts: Traffic = { roundTrips: 0, commits: 0 };
  const server = createServer((client) => {
    const database = connect({ host: hostname, port: Number(port) });
    const connection = new Connection(counts);
    client.on("data", (bytes: Buffer) => {
      connection.sent(bytes);
      database.write(bytes);
    });
    database.on("data", (bytes: Buffer) => {
      connection.received(bytes);
      client.write(bytes);
    });
    for (const [one, other] of [
      [client, database],
      [database, client],
    ] as const) {
      sockets.add(one);
      one.setNoDelay();
      one.on("error", () => {});
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  const url = new URL(databaseUrl);
  url.port = String(await listen(server));
  return Object.assign(counts, {
    url: url.href,
    reset: () => void Object.assign(counts, { roundTrips: 0, commits: 0 }),
    [Symbol.asyncDispose]: async () => {
      for (const one of sockets) one.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

/** Reads both directions of a connection (https://www.postgresql.org/docs/current/protocol-message-formats.html). */
class Connection {
  /** How many answers the client waits for that end with ReadyForQuery. */
  #due = 0;
  /** It waits for the description of a statement. */
  #isDescribed = true;
  #isHint = false;
  #hasWritten = false;
  /** The first message of a client has no type. */
  readonly sent = messages(false, (type, body) => this.#ask(type, body));
  readonly received = messages(true, (type, body) => this.#answer(type, body));

  constructor(private readonly counts: Traffic) {}

  #ask(type: string, body: Buffer): void {
    if (type === "P") this.#isHint = body.includes(hintStatement);
    // Sync, Query and Flush.
    if (!"SQH".includes(type)) return;
    const isWaiting = this.#due > 0 || !this.#isDescribed;
    if (!isWaiting && !this.#isHint) this.counts.roundTrips += 1;
    if (type === "H") this.#isDescribed = false;
    else this.#due += 1;
  }

  #answer(type: string, body: Buffer): void {
    // RowDescription, NoData or ErrorResponse.
    if ("TnE".includes(type)) this.#isDescribed = true;
    if (type === "C") {
      const tag = body.toString("latin1", 0, body.length - 1);
      if (tag === "COMMIT") this.#commit();
      else if (/^(INSERT 0|UPDATE|DELETE) [1-9]/.test(tag)) this.#hasWritten = true;
    }
    if (type !== "Z") return;
    // The first one says that the connection is open.
    this.#due = Math.max(0, this.#due - 1);
    this.#isHint = false;
    if (body.toString() === "I" && this.#hasWritten) this.#commit();
  }

  #commit(): void {
    this.counts.commits += 1;
    this.#hasWritten = false;
  }
}

/** Splits what is received into messages. */
function messages(hasType: boolean, handle: (type: string, body: Buffer) => void): (bytes: Buffer) => void {
  let rest = Buffer.alloc(0);
  let typed = hasType;
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      const start = typed ? 1 : 0;
      if (rest.length < start + 4) return;
      const end = start + rest.readUInt32BE(start);
      if (rest.length < end) return;
      if (typed) handle(String.fromCharCode(rest[0]!), rest.subarray(start + 4, end));
      typed = true;
      rest = rest.subarray(end);
    }
  };
}
