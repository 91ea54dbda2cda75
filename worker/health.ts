import { goneSeconds } from "../core/schedule/heartbeat.ts";
import { hostInUrl } from "../platform/address.ts";
import { SvcError } from "../platform/errors.ts";

/** A loop that was not seen for so long is broken: with or without a database, it asks several times a minute. */
const stuckSeconds = 60;

/** How this worker, and no other, is doing. */
export class WorkerHealth {
  #asked: number | undefined;
  #answered: number | undefined;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** The worker's loop asks the database something. */
  asks(): void {
    this.#asked = this.now();
  }

  /** The database has answered. */
  answered(): void {
    this.#answered = this.now();
  }

  /**
   * - `loop` is `stuck` when the worker's own loop does not come round; to start the process again helps
   * - `database` is when the heartbeat last succeeded; past `goneSeconds`, other workers count this one as gone
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
 * Serves `/healthcheck` (200 while this worker works) and `/live` (200 unless it has to be started again).
 * @throws SvcError for a port that cannot be listened on
 */
export function serveHealth(
  { host, port }: { host: string; port: number },
  health: WorkerHealth,
): HealthEndpoint {
  try {
    const server = Bun.serve({
      ...{ hostname: host, port, reusePort: false, development: false },
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
      `--health-port: port ${port} of ${host} ${taken ? "is taken" : "cannot be listened on"}`,
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
