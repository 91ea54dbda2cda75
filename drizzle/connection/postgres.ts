import type { Sql } from "postgres";
import { noteBuffered } from "./socket.ts";
import { changeTransactions, type Scope } from "./transactions.ts";

/** Changes in a client what postgres.js has no settings for. postgres.test.ts notices a version that may differ. */
export function patch(client: Sql): void {
  const statement = Object.getPrototypeOf(client.unsafe("")) as object;
  appendRows(statement);
  seeBuffered(statement);
  skipDescribing(statement);
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

/** Marks the options of a statement whose parameters postgres.js can send without asking for their types. */
const sentAtOnce = Symbol("sent at once");
const describes = Symbol("describes first");

/** What postgres.js has of a statement. */
interface Statement {
  options: Options;
  onlyDescribe?: boolean;
  [describes]?: unknown;
}

/**
 * postgres.js asks for the types of parameters before it sends them, unless it has prepared the statement on this
 * connection. That is a round trip more. Meanwhile it gives the connection no other statement, and this stays so: quick
 * ones would wait for a slow search.
 */
function skipDescribing(statement: object): void {
  Object.defineProperty(statement, "describeFirst", {
    configurable: true,
    get(this: Statement) {
      return this[describes];
    },
    set(this: Statement, needed: unknown) {
      const { options } = this;
      const skips = Boolean(needed && options[sentAtOnce] && !this.onlyDescribe);
      this[describes] = needed && !skips;
      if (!skips) return;
      const { onexecute } = options;
      options.onexecute = (one) => {
        onexecute?.(one);
        return false;
      };
    },
  });
}

/**
 * Sends parameters together with their statement if they are texts, numbers or the like. For drizzle's client only: it
 * converts times and JSON itself, and this one by the types of the parameters.
 */
export function sendParametersAtOnce(client: Sql): void {
  const change = (scope: Scope) => {
    const ask = scope.unsafe as Ask;
    const asking: Ask = (text, values, options) =>
      ask(text, values, values?.every(isPlain) ? { ...options, [sentAtOnce]: true } : options);
    scope.unsafe = asking as Sql["unsafe"];
  };
  change(client);
  changeTransactions(client, change);
}

const isPlain = (value: unknown) =>
  typeof value !== "object" || value === null || value instanceof Uint8Array;

/** What postgres.js has of a connection. Its timer starts when it is idle, in the queue of those that are. */
interface Connection {
  queue: { readonly length: number; push(one: Connection): unknown; shift(): Connection | undefined };
  idleTimer: { start(): void };
}

interface Options {
  [sentAtOnce]?: boolean;
  onexecute?: (one: Connection) => unknown;
}

type Ask = (text: string, values?: unknown[], options?: Options) => unknown;

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
