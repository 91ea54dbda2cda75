import type { AnyElysia } from "elysia";
import type { Verbosity } from "../../platform/log.ts";
import type { MetricsPlace } from "../../platform/telemetry/endpoint.ts";

/** What other programs may export: an object that answers requests. */
export interface FetchApp {
  fetch(request: Request, server?: unknown): Response | Promise<Response>;
}

/** An application, and what its process may call. Ours implements all of it; others may implement nothing. */
export interface Service {
  app: FetchApp | AnyElysia;
  /** From then on `/healthcheck` answers 503, so that load balancers go elsewhere. */
  leave?: () => void;
  /**
   * Called before the server stops, to end held requests. Elysia's stop hooks run only after connections have ended.
   */
  drain?: () => Promise<void>;
  /** Resolves when the application can serve. */
  untilReady?: () => Promise<void>;
  /** Counts a request that was answered before it reached the application. */
  refused?: (request: Request, answer: Response) => void;
  /**
   * Called on SIGHUP, before the certificate is reloaded.
   * @returns whether there was anything to reload
   * @throws ConfigurationError if that is unusable
   */
  reload?: () => Promise<boolean>;
  /** Called for TLS handshakes on the mTLS port that failed, for the operator's log. */
  handshakeFailed?: (reason: string, address: string | undefined) => void;
  verbosity?: Verbosity;
  /** Called when the server does not end TLS itself: warns if a TLS proxy would hide client addresses. */
  warnWithoutTls?: () => void;
  /** Sends remaining telemetry. Call it last: Elysia does not wait for its own stop hooks. */
  flush?: () => Promise<void>;
  /** All metrics in Prometheus text format, and where to serve them. */
  metrics?: MetricsPlace & { scrape: () => Promise<string> };
}

export function isElysia(app: FetchApp | AnyElysia): app is AnyElysia {
  return (
    "listen" in app && "wrap" in app && typeof app.listen === "function" && typeof app.wrap === "function"
  );
}
