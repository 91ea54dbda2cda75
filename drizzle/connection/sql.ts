import postgres from "postgres";
import { readAddress } from "./address.ts";
import { arrayTypes } from "./arrays.ts";
import { addressesOf } from "./hosts.ts";
import { endWithConnection } from "./lost.ts";
import { patch } from "./postgres.ts";
import { Primary } from "./primary.ts";
import { DatabaseSocket, type UnreachableRetry } from "./socket.ts";

/** A client for raw SQL. Never pass it to drizzle(), which changes how it reads and writes times. */
export type Sql = postgres.Sql;

export interface SqlOptions extends postgres.Options<Record<string, never>> {
  /** Closes a connection that is idle, or gives no answer, for this long. */
  silenceSeconds?: number;
  /** Without it, a host that cannot be reached is reported at once. */
  retry?: UnreachableRetry;
}

/** One per address with several hosts, so that all pools share what one connection finds out. */
const primaries = new Map<string, Primary>();

/** The servers in the address; undefined for one host, which needs no search. */
export function primaryOf(address: string): Primary | undefined {
  const addresses = addressesOf(address);
  if (addresses.length === 1) return undefined;
  const known = primaries.get(address) ?? new Primary(addresses, openSql);
  primaries.set(address, known);
  return known;
}

/**
 * Opens a client for raw SQL, LISTEN and schema changes. Separate from client.ts, so that these load no tables. If the
 * address has several hosts, each connection goes to the one that accepts writes at the time.
 */
export function openSql(address: string, { silenceSeconds, retry, ...options }: SqlOptions = {}): Sql {
  const primary = primaryOf(address);
  const { url, place, ssl, hasTimeout } = readAddress(addressesOf(address)[0]);
  const name = decodeURIComponent(new URL(url).pathname.slice(1));
  const openOne = ({ host: [host], port: [port] }: Parsed) =>
    new DatabaseSocket({ silenceSeconds, retry }).to({ host, port, database: name || undefined });
  const open = primary ? () => primary.open({ silenceSeconds, retry }) : openOne;
  const client = postgres(url, {
    ...(ssl === undefined ? {} : { ssl }),
    // With several hosts, one has just answered; if it does not answer now, another may.
    ...(hasTimeout ? {} : { connect_timeout: primary ? 5 : 10 }),
    // postgres.js splits a host at its colons, but not in a list, which its types do not know.
    ...(place === undefined
      ? {}
      : { host: [place.host] as unknown as string, port: [place.port] as unknown as number }),
    // postgres.js uses the name undecoded, while PostgreSQL's own tools decode it.
    ...(name === "" ? {} : { database: name }),
    onnotice: () => {},
    // Bun handles the consequences of a closed connection only with the next event. Until then, a query would write to
    // a socket that no longer exists (drizzle/connection/lost.ts).
    onclose: () => void setImmediate(() => {}),
    backoff,
    types: { bytea, ...arrayTypes },
    fetch_types: false,
    // The types of postgres.js do not know it.
    ...({ socket: open } as object),
    ...options,
    // A database may have another style, in which JavaScript reads no times. Poolers pass this setting on.
    connection: { application_name: "svc", DateStyle: "ISO", ...options.connection },
  });
  patch(client);
  endWithConnection(client);
  return client;
}

/** What postgres.js has read from the address of one host, and from libpq's variables. */
interface Parsed {
  host: [string];
  port: [number];
}

/** postgres.js reads only the format `hex`, but `bytea_output = escape` may be set for the database or the user. */
const bytea = {
  to: 17,
  from: [17],
  serialize: (bytes: Uint8Array) => `\\x${Buffer.from(bytes).toString("hex")}`,
  parse(text: string) {
    if (text.startsWith("\\x")) return Buffer.from(text.slice(2), "hex");
    const unescaped = text.replace(/\\(\\|[0-7]{3})/g, (_, one: string) =>
      one === "\\" ? one : String.fromCharCode(Number.parseInt(one, 8)),
    );
    return Buffer.from(unescaped, "latin1");
  },
};

/**
 * Seconds until the next connection attempt. postgres.js alone waits up to 20 s and counts the failures of all
 * connections in a pool, so recovery after an outage would take that long.
 */
function backoff(failures: number): number {
  return (0.5 + Math.random() / 2) * Math.min(2 ** failures / 100, 0.5);
}
