import type { AnyElysia } from "elysia";
import type { Verbosity } from "../../platform/log.ts";
import type { MetricsPlace } from "../../platform/telemetry/endpoint.ts";

/** What any program may hand us: an object that answers requests. */
export interface FetchApp {
  fetch(request: Request, server?: unknown): Response | Promise<Response>;
}

/** An application, and what the process that serves it asks of it. Our own answers all of that, any other may answer none. */
export interface Service {
  app: FetchApp | AnyElysia;
  /** From then on `/healthcheck` answers 503, so that balancers look elsewhere. */
  leave?: () => void;
  /** Before the server stops: ends the requests that are held back. Elysia's own stop hooks run when connections have ended. */
  drain?: () => Promise<void>;
  /** Resolves when the application can serve. */
  untilReady?: () => Promise<void>;
  /** Counts a request that was answered in place of the application. */
  refused?: (request: Request, answer: Response) => void;
  verbosity?: Verbosity;
  /** Called when the server does not end TLS itself: warns if a proxy that does would hide the clients' addresses. */
  warnWithoutTls?: () => void;
  /** Sends what telemetry is left. After everything else: Elysia does not wait for its own stop hooks. */
  flush?: () => Promise<void>;
  /** All metrics, in the text format of Prometheus, and where they are to be served. */
  metrics?: MetricsPlace & { scrape: () => Promise<string> };
}

export function isElysia(app: FetchApp | AnyElysia): app is AnyElysia {
  return (
    "listen" in app && "wrap" in app && typeof app.listen === "function" && typeof app.wrap === "function"
  );
}
