import type { Sql } from "postgres";
import { noteBuffered } from "./socket.ts";

/** Changes in a client what postgres.js has no settings for. postgres.test.ts notices a version that may differ. */
export function patch(client: Sql): void {
  const statement = Object.getPrototypeOf(client.unsafe("")) as object;
  appendRows(statement);
  seeBuffered(statement);
  reuseNewest(client);
}

const states = new WeakMap<object, object | null>();

/** postgres.js sets the state of a statement to an object of its connection just before it buffers the statement. */
function seeBuffered(statement: object): void {
  Object.defineProperty(statement, "state", {
    configurable: true,
    get(this: object) {
      return states.get(this) ?? null;
    },
    set(this: object, backend: object | null) {
      if (backend === null) return;
      states.set(this, backend);
      noteBuffered(backend);
    },
  });
}

/**
 * postgres.js counts the rows of a result, and does not start again after a statement that fails in the middle: the next
 * result on that connection would begin with as many holes. It does not count for a statement with a callback for rows.
 */
function appendRows(statement: object): void {
  Object.assign(statement, { forEachFn: (row: unknown, result: unknown[]) => result.push(row) });
}

/** What postgres.js has of a connection. Its timer starts when it is idle, in the queue of those that are. */
interface Connection {
  queue: { readonly length: number; push(one: Connection): unknown; shift(): Connection | undefined };
  idleTimer: { start(): void };
}

type Ask = (
  text: string,
  values?: unknown[],
  options?: { onexecute?: (one: Connection) => unknown },
) => unknown;

/**
 * Of the idle connections, uses the one that was used last. postgres.js uses the one that has been idle for longest, so
 * that light traffic keeps every connection that a peak has opened. If PostgreSQL then has none left, other processes
 * would not get one until this traffic ends.
 */
function reuseNewest(client: Sql): void {
  const ask = client.unsafe as Ask;
  let isSeen = false;
  const see = (one: Connection) => {
    const { idleTimer } = one;
    const { start } = idleTimer;
    idleTimer.start = () => {
      idleTimer.start = start;
      takeNewest(one.queue);
      start();
    };
  };
  const seeing: Ask = (text, values, options) => {
    if (isSeen) return ask(text, values, options);
    const onexecute = (one: Connection) => {
      if (!isSeen) see(one);
      isSeen = true;
      return options?.onexecute ? options.onexecute(one) : true;
    };
    return ask(text, values, { ...options, onexecute });
  };
  client.unsafe = seeing as Sql["unsafe"];
}

function takeNewest(idle: Connection["queue"]): void {
  const { shift } = idle;
  idle.shift = () => {
    const all: (Connection | undefined)[] = [];
    while (idle.length > 0) all.push(shift());
    const newest = all.pop();
    for (const one of all) idle.push(one!);
    return newest;
  };
}
