/** A database at its server; the name is unknown if the address has none. */
export interface DatabasePlace {
  host: string;
  port: number;
  database?: string;
}

/** Where each error of a connection happened. Not a property of the error, because logs print those. */
const places = new WeakMap<Error, DatabasePlace>();
/** The last database that was opened at each place. */
const databases = new Map<string, string>();

export function notePlace(error: Error, { host, port, database }: Partial<DatabasePlace>): void {
  if (host !== undefined && port !== undefined && !places.has(error))
    places.set(error, { host, port, database });
}

export function noteDatabase({ host, port, database }: DatabasePlace): void {
  if (database !== undefined) databases.set(`${host} ${port}`, database);
}

/** Which server and database an error of a connection is about. */
export function placeOfError(error: unknown): DatabasePlace | undefined {
  const known = error instanceof Error ? places.get(error) : undefined;
  if (known) return known;
  // postgres.js counts the time until a connection is open, and takes these from our socket.
  const { code, address, port } = Object(error) as { code?: unknown; address?: unknown; port?: unknown };
  if (code !== "CONNECT_TIMEOUT" || typeof address !== "string" || typeof port !== "number") return undefined;
  return { host: address, port, database: databases.get(`${address} ${port}`) };
}
