import { goneSeconds } from "../core/schedule/heartbeat.ts";
import { hostInUrl } from "../platform/address.ts";
import { SvcError } from "../platform/errors.ts";

/** A loop without a query for this long is stuck: with or without a database, it makes several a minute. */
const stuckSeconds = 60;

/** The health of this worker only. */
export class WorkerHealth {
  #asked: number | undefined;
  #answered: number | undefined;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Records that the worker's loop is querying the database. */
  asks(): void {
    this.#asked = this.now();
  }

  /** Records that the database answered. */
  answered(): void {
    this.#answered = this.now();
  }

  /**
   * - `loop` is `stuck` when the worker's loop no longer runs; restarting the process helps
   * - `database` is based on the last successful heartbeat; after `goneSeconds`, other workers count this one as gone
   */
  report(): { ready: boolean; alive: boolean; body: object } {
    const since = (at: number | undefined) => (at === undefined ? undefined : (this.now() - at) / 1000);
    const [asked, answered] = [since(this.#asked), since(this.#answered)];
    const alive = asked === undefined || asked <= stuckSeconds;
    const ready = alive && answered !== undefined && answered <= goneSeconds;
    const loop = asked === undefined ? "starting" : alive ? "ok" : "stuck";
    const database = answered === undefined ? "unknown" : answered <= goneSeconds ? "ok" : "unreachable";
    const seconds = answered === undefined ? null : Math.floor(answered);
    return { ready, alive, body: { loop, database, seconds_since_heartbeat: seconds } };
  }
}

export interface HealthEndpoint {
  address: string;
  stop(): Promise<void>;
}

/**
 * Serves `/healthcheck` (200 while this worker works) and `/live` (200 unless the process must be restarted).
 * @throws SvcError when it cannot listen on the port
 */
export function serveHealth(
  { host, port }: { host: string; port: number },
  health: WorkerHealth,
): HealthEndpoint {
  try {
    const server = Bun.serve({
      hostname: host,
      port,
      reusePort: false,
      development: false,
      fetch: ({ url }) => answer(new URL(url).pathname, health),
    });
    return {
      address: `http://${hostInUrl(host)}:${server.port}/healthcheck`,
      stop: () => server.stop(true),
    };
  } catch (cause) {
    const taken = (cause as { code?: string }).code === "EADDRINUSE";
    throw new SvcError(
      "configuration",
      `--health-port: port ${port} of ${host} ${taken ? "is taken" : "is not available"}`,
      { cause },
    );
  }
}

function answer(path: string, health: WorkerHealth): Response {
  const { ready, alive, body } = health.report();
  const good = path === "/healthcheck" ? ready : path === "/live" ? alive : undefined;
  if (good === undefined) return new Response(null, { status: 404 });
  return Response.json(body, { status: good ? 200 : 503, headers: { "cache-control": "no-store" } });
}
