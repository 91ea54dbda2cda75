import type { Socket } from "node:net";
import type postgres from "postgres";
import type { Sql } from "postgres";
import { withTimeLimit } from "../../platform/time_limit.ts";
import type { DatabasePlace } from "../error_place.ts";
import { type Place, placeOf } from "./address.ts";
import { DatabaseSocket, isUnreachable, type SocketOptions } from "./socket.ts";

/** One server of a cluster. */
interface Member extends DatabasePlace {
  /** The address of this server alone. */
  address: string;
}

/** Opens a client of one server. */
type OpenSql = (address: string, options: postgres.Options<Record<string, never>>) => Sql;

interface Finding {
  place: Member;
  /** The timeline of a server that accepts writes, as hexadecimal digits. A promotion starts the next one. */
  timeline?: string;
  /** Why it does not accept writes, or why it could not be queried. */
  error?: Error;
}

/** A server that does not answer in this time is frozen or unreachable. */
const patienceSeconds = 3;
/**
 * Waits this long for a second server that accepts writes: a former primary that is back and unaware of the promotion.
 */
const graceMilliseconds = 300;
/** How long an answer is reused for other connections, as those of a pool are opened together. */
const goodForMilliseconds = 1000;

const question = `
  select
    case when pg_is_in_recovery() then null else left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline,
    current_setting('transaction_read_only') = 'on' as read_only`;

/**
 * Finds the server that accepts writes among those in an address, each time a connection is opened.
 *
 * postgres.js does not get the list: while no host accepts writes, it tries them endlessly without a pause.
 *
 * If two servers accept writes, the newer timeline wins: a primary that returns after its standby was promoted would
 * accept writes that the cluster never sees. Connections to any other server are cut when that is detected, as a host
 * that is frozen or has lost its network never closes them.
 */
export class Primary {
  readonly #places: readonly Member[];
  readonly #sockets = new Map<Socket, string>();
  #finding: Promise<Member> | undefined;
  #found: Member;

  constructor(
    addresses: readonly [string, ...string[]],
    private readonly openSql: OpenSql,
  ) {
    this.#places = addresses.map((address) => ({
      address,
      database: decodeURIComponent(new URL(address).pathname.slice(1)) || undefined,
      ...placeOf(address)!,
    }));
    this.#found = this.#places[0]!;
  }

  /** @throws NoPrimary when no server accepts writes; PostgreSQL's own error if it rejects the user or password */
  find(): Promise<Member> {
    if (this.#finding) return this.#finding;
    const finding = this.#ask();
    this.#finding = finding;
    const forget = () => {
      if (this.#finding === finding) this.#finding = undefined;
    };
    finding.then((place) => {
      this.#found = place;
      for (const [socket, address] of this.#sockets) if (address !== place.address) socket.destroy();
      setTimeout(forget, goodForMilliseconds).unref();
    }, forget);
    return finding;
  }

  /** Opens a socket to the primary for postgres.js. Failures are socket errors, never rejections. */
  async open(options: SocketOptions): Promise<Socket> {
    const place = await this.find().catch((error: unknown) => error as Error);
    if (place instanceof Error) return new DatabaseSocket(options).fail(place);
    const onClose = () => {
      this.#sockets.delete(socket);
      // The connection may have ended because of a failover, so the next one searches again.
      if (this.#found === place) this.#finding = undefined;
    };
    const socket = new DatabaseSocket({ ...options, onClose });
    this.#sockets.set(socket, place.address);
    return socket.to(place);
  }

  async #ask(): Promise<Member> {
    const { promise: grace, resolve: enough } = Promise.withResolvers<void>();
    let timer: Timer | undefined;
    const findings: Finding[] = [];
    const asked = this.#places.map(async (place) => {
      const finding = await askOne(place, this.openSql);
      findings.push(finding);
      if (finding.timeline !== undefined) timer ??= setTimeout(enough, graceMilliseconds);
    });
    await Promise.race([Promise.all(asked), grace]);
    clearTimeout(timer);
    const [newest] = findings
      .filter(({ timeline }) => timeline !== undefined)
      .sort((a, b) => (a.timeline! < b.timeline! ? 1 : -1));
    if (newest) return newest.place;
    throw noPrimary(findings);
  }
}

async function askOne(place: Member, openSql: OpenSql): Promise<Finding> {
  try {
    const { timeline, read_only } = await askState(place.address, openSql);
    if (timeline === null) return { place, error: new NotPrimary("is a standby") };
    if (read_only) return { place, error: new NotPrimary("is read-only") };
    return { place, timeline };
  } catch (error) {
    return { place, error: error as Error };
  }
}

interface State {
  timeline: string | null;
  read_only: boolean;
}

async function askState(address: string, openSql: OpenSql): Promise<State> {
  const sql = openSql(address, {
    max: 1,
    connect_timeout: patienceSeconds,
    connection: { application_name: "svc primary" },
  });
  try {
    const rows = await withTimeLimit(patienceSeconds * 1000, sql.unsafe<State[]>(question));
    if (!rows) throw Object.assign(new Error("does not answer"), { code: "CONNECT_TIMEOUT" });
    return rows[0]!;
  } catch (error) {
    if ((error as { code?: unknown }).code !== "3D000") throw error;
    // The caller handles a missing database: `svc database init` creates it.
    const maintenance = new URL(address);
    if (maintenance.pathname === "/postgres") throw error;
    maintenance.pathname = "/postgres";
    return await askState(maintenance.href, openSql);
  } finally {
    await sql.end({ timeout: 0 });
  }
}

/** Names the result for each server. */
export class NoPrimary extends Error {
  override name = "NoPrimary";
  /** In the style of postgres.js: the database is currently unavailable. */
  readonly code = "CONNECTION_NO_PRIMARY";
}

/** A rejected user or password is rejected by every server, and is not a temporary condition. */
function noPrimary(findings: readonly Finding[]): Error {
  const refusal = findings.find(({ error }) => /^28/.test((error as { code?: string }).code ?? ""));
  if (refusal) return refusal.error!;
  const each = findings.map(({ place, error }) => `${hostInUrl(place)} ${describe(error!)}`);
  const [first] = findings;
  const cause = findings.every(({ error }) => isUnreachable(error)) ? first?.error : undefined;
  return new NoPrimary(`No database server takes writes: ${each.join(", ")}`, { cause });
}

const hostInUrl = ({ host, port }: Place) => `${host.includes(":") ? `[${host}]` : host}:${port}`;

function describe(error: Error): string {
  if (error instanceof NotPrimary) return error.message;
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? `does not answer (${code})` : "does not answer";
}

class NotPrimary extends Error {}
