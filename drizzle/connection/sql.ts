import type { Socket } from "node:net";
import postgres from "postgres";
import { readAddress } from "./address.ts";
import { addressesOf } from "./hosts.ts";
import { endWithConnection } from "./lost.ts";
import { Primary } from "./primary.ts";

/** A client for raw SQL. Never one that drizzle() was given: drizzle changes how it reads and writes times. */
export type Sql = postgres.Sql;

/** Of each address of several hosts that this process uses: what one connection finds out serves all pools. */
const primaries = new Map<string, Primary>();

/** The servers that the address names; undefined for one host, which is connected to without further questions. */
export function primaryOf(address: string): Primary | undefined {
  const addresses = addressesOf(address);
  if (addresses.length === 1) return undefined;
  const known = primaries.get(address) ?? new Primary(addresses, openSql);
  primaries.set(address, known);
  return known;
}

/**
 * A client for raw SQL, LISTEN and schema changes. Apart from client.ts, so that these load no tables. With several hosts
 * in the address, each connection goes to the one that takes writes at that moment.
 */
export function openSql(address: string, options: postgres.Options<Record<string, never>> = {}): Sql {
  const primary = primaryOf(address);
  const { url, ssl, hasTimeout } = readAddress(addressesOf(address)[0]);
  const name = decodeURIComponent(new URL(url).pathname.slice(1));
  const client = postgres(url, {
    ...(ssl === undefined ? {} : { ssl }),
    // One of several has just answered: when it does not now, there is another one to ask for.
    ...(hasTimeout ? {} : { connect_timeout: primary ? 5 : 10 }),
    // postgres.js takes the name as it stands, PostgreSQL's own tools decode it.
    ...(name === "" ? {} : { database: name }),
    onnotice: () => {},
    // Bun goes on to what follows from a connection's end when something else happens: whoever asks meanwhile would write
    // to where there is no socket any more (drizzle/connection/lost.ts).
    onclose: () => void setImmediate(() => {}),
    backoff,
    connection: { application_name: "svc" },
    // postgres.js takes a function here; its types know a socket only.
    ...(primary ? { socket: (() => primary.open()) as unknown as Socket } : {}),
    ...options,
  });
  endWithConnection(client);
  return client;
}

/**
 * Seconds until a connection is tried again. By itself postgres.js waits for up to 20 s, and counts the failures of all
 * connections of a pool: behind an outage nobody would have the database back for as long.
 */
function backoff(failures: number): number {
  return (0.5 + Math.random() / 2) * Math.min(2 ** failures / 100, 0.5);
}
