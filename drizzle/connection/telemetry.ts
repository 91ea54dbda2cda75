import type { Meter } from "@opentelemetry/api";
import type { Telemetry } from "../../platform/telemetry/telemetry.ts";
import type { PoolWatch } from "./watch.ts";

/** In characters; longer statements carry rows. */
const longestText = 2000;

interface Pool {
  size: number;
  /** Requested statements (outside transactions) and transactions that have not ended. */
  asked: number;
}

/**
 * Watches a program's pools, by name. A pool opened again under a name replaces the previous one, whose pending
 * requests might never end.
 */
export function watchPools({
  meter,
  tracing,
}: Pick<Telemetry, "meter" | "tracing">): (name: string, size: number) => PoolWatch {
  const pools = new Map<string, Pool>();
  if (meter) observePools(meter, pools);
  const statement = (text: string) => {
    const span = tracing?.child({
      name:
        text
          .match(/^\s*\w+/)?.[0]
          .trim()
          .toUpperCase() ?? "SQL",
      kind: "client",
      attributes: { "db.system.name": "postgresql", "db.query.text": text.slice(0, longestText) },
    });
    return (error?: unknown) => {
      if (error !== undefined) span?.failed();
      span?.end();
    };
  };
  return (name, size) => {
    const pool = { size, asked: 0 };
    pools.set(name, pool);
    const wanted = () => {
      pool.asked += 1;
      return () => {
        pool.asked -= 1;
      };
    };
    return { ...(meter ? { wanted } : {}), ...(tracing ? { statement } : {}) };
  };
}

function observePools(meter: Meter, pools: ReadonlyMap<string, Pool>): void {
  const gauge = (name: string, description: string, value: (pool: Pool) => number) =>
    meter.createObservableGauge(name, { description }).addCallback((seen) => {
      for (const [pool, state] of pools)
        seen.observe(value(state), { "db.client.connection.pool.name": pool });
    });
  gauge("db.client.connection.max", "Maximum number of open connections to PostgreSQL", ({ size }) => size);
  gauge(
    // OpenTelemetry's name ends in `count`, which Prometheus reserves for histograms.
    "db.client.connection.used",
    "Open connections to PostgreSQL that are in use",
    ({ asked, size }) => Math.min(asked, size),
  );
  gauge(
    "db.client.connection.pending_requests",
    "Statements and transactions that wait for a connection, or share one",
    ({ asked, size }) => Math.max(0, asked - size),
  );
}
