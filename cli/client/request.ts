import { version } from "../../package.json" with { type: "json" };
import { readAtMost } from "../../platform/bounded_body.ts";
import {
  Conflict,
  Forbidden,
  InvalidInput,
  NotFound,
  noRoute,
  Refused,
  SvcError,
  TooManyRequests,
  Unauthenticated,
  Unavailable,
} from "../../platform/errors.ts";
import { isRecord } from "../../platform/record.ts";
import type { Environment } from "../../platform/variable.ts";
import { Interrupted } from "../errors.ts";
import type { Io } from "../io.ts";
import { printable } from "../text.ts";
import { proxyOf } from "./proxy.ts";
import { DEFAULT_SERVER, isLoopback, type Server } from "./server.ts";
import { machineClock, readServerTime } from "./server_clock.ts";

export interface Request {
  method?: "GET" | "DELETE" | "POST" | "PUT";
  /** Sent as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Seconds; 10 by default. */
  timeout?: number;
  /** Bytes of the longest answer; 64 kB by default. */
  largest?: number;
}

export interface Answer {
  status: number;
  headers: Headers;
  /** Empty for an answer without a body. */
  body: Record<string, unknown>;
}

/** The request or its answer was lost: the same request may succeed when it is repeated. */
export class NetworkFault extends Unavailable {}

/** Whether the same request may succeed later. */
export function mayPass(error: unknown): error is Unavailable | TooManyRequests {
  return (error instanceof Unavailable && !(error instanceof Refused)) || error instanceof TooManyRequests;
}

/** Shown on the approve page: program, version and platform. */
const userAgent = `svc/${version} (${process.platform}; ${process.arch})`;

const largestBody = 65_536;
/** Bytes: a page of the longest status reports, a long document, or the groups of somebody with thousands of them. */
export const largestAnswer = 33_554_432;

/**
 * Sends a request to the server and nowhere else: a redirect is an error, and so is an answer that is not a JSON object
 * of limited size, except for 401 and 429. Bun's fetch reads proxies and certificate authorities from the usual
 * variables. It would also use a proxy for loopback, which is prevented here.
 *
 * @throws NetworkFault if a retry may succeed, Unavailable if not, Interrupted on Ctrl-C.
 */
export async function request(io: Io, server: Server, url: string, options: Request = {}): Promise<Answer> {
  const { method = "GET", headers = {}, body, signal, timeout = 10, largest = largestBody } = options;
  const timer = AbortSignal.timeout(timeout * 1000);
  const sent = machineClock(io).now().getTime();
  try {
    const response = await io.fetch(url, {
      method,
      headers: {
        accept: "application/json",
        "accept-encoding": "identity",
        "user-agent": userAgent,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      redirect: "manual",
      signal: signal ? AbortSignal.any([signal, timer]) : timer,
      ...connectionOf(server, url),
    });
    assertServed(io, server, response);
    const text = await readText(response, server, largest);
    const { status, headers: received } = response;
    const answer = { status, headers: received, body: readObject(text, response, server) };
    readServerTime(io, received, sent);
    return answer;
  } catch (error) {
    if (signal?.aborted) throw new Interrupted();
    if (error instanceof Unavailable) throw error;
    throw fault(error, io, server, timeout);
  }
}

/**
 * Opens a stream of server-sent events, under the rules of `request`. The time limit is for the answer to begin.
 *
 * @throws NetworkFault if a retry may succeed, SvcError if the server refuses, Interrupted on Ctrl-C.
 */
export async function openStream(
  io: Io,
  server: Server,
  url: string,
  { headers = {}, signal, timeout = 10 }: Pick<Request, "headers" | "signal" | "timeout">,
): Promise<Response> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new DOMException("", "TimeoutError")), timeout * 1000);
  const sent = machineClock(io).now().getTime();
  try {
    const response = await io.fetch(url, {
      headers: {
        accept: "text/event-stream",
        "accept-encoding": "identity",
        "cache-control": "no-store",
        "user-agent": userAgent,
        ...headers,
      },
      redirect: "manual",
      signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
      // Bun ends a connection after five minutes otherwise.
      timeout: false as never,
      ...connectionOf(server, url),
    });
    const { status } = response;
    assertServed(io, server, response);
    const isStream = /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "");
    if (status === 200 && isStream) {
      readServerTime(io, response.headers, sent);
      return response;
    }
    const body = readObject(await readText(response, server, largestBody), response, server);
    if (status === 200) throw new Unavailable(`${server.base} answered with something that is not a stream`);
    const refusal = problem({ status, headers: response.headers, body }, server);
    throw refusal instanceof Unavailable ? new NetworkFault(refusal.detail) : refusal;
  } catch (error) {
    if (signal?.aborted) throw new Interrupted();
    if (error instanceof SvcError) throw error;
    throw fault(error, io, server, timeout);
  } finally {
    clearTimeout(timer);
  }
}

function connectionOf({ tls }: Server, url: string): BunFetchRequestInit {
  return { ...(isLoopback(url) ? { proxy: false as never } : {}), ...(tls === undefined ? {} : { tls }) };
}

async function readText(response: Response, server: Server, largest: number): Promise<string> {
  const bytes = await readAtMost(response, largest);
  if (!bytes && !saysAllByStatus(response.status))
    throw new Unavailable(`${server.base} answered with more than ${largest} bytes`);
  return new TextDecoder().decode(bytes);
}

/** Whether `problem` needs no body: a gateway that limits requests, or asks for a sign-in, answers with its own page. */
function saysAllByStatus(status: number): boolean {
  return status === 401 || status === 429;
}

function readObject(text: string, { status, headers }: Response, server: Server): Record<string, unknown> {
  if (text.trim() === "" && (status === 204 || status >= 500)) return {};
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value)) return value;
  } catch {}
  if (saysAllByStatus(status)) return {};
  // A gateway in front of a restarting server answers with its own page.
  if (status >= 502 && status <= 504) {
    const seconds = retryAfter(headers);
    const hint = seconds === undefined ? "" : `; try again in ${seconds} s`;
    throw new NetworkFault(`${server.base} is not available (HTTP ${status})${hint}`);
  }
  const what = /^\s*</.test(text) ? "an HTML page" : "something that is not JSON";
  throw new Unavailable(`${server.base} answered with ${what} (HTTP ${status}); is it an svc server?`);
}

/** @throws Unavailable for an answer that is not the server's by its status: a redirect, or a proxy's refusal */
function assertServed({ env }: Io, server: Server, { status, headers }: Response): void {
  if (status === 407) throw new NetworkFault(`${unreached(env, server)}: ${proxyWantsPassword}`);
  if (status >= 300 && status < 400) throw redirected(server, headers.get("location"));
}

const proxyWantsPassword =
  "the proxy asks for a user name and a password (HTTP 407), which belong into its address: http://user:password@host:port";

function unreached(env: Environment, { base }: Server): string {
  const proxy = proxyOf(env, base);
  return `cannot reach ${base}${proxy === undefined ? "" : ` through the proxy ${proxy}`}`;
}

function redirected(server: Server, location: string | null): Unavailable {
  const target = location === null ? null : URL.parse(location, `${server.base}/`);
  const where = target === null ? "nowhere" : printable(target.href, 200);
  const hint =
    target !== null && /^https?:$/.test(target.protocol)
      ? `; if that is the server, use --server ${printable(target.origin, 200)}`
      : "";
  return new Unavailable(`${server.base} redirects to ${where}, which svc does not follow${hint}`);
}

function fault(error: unknown, { env }: Io, server: Server, timeout: number): Unavailable {
  const { name, code, status } = error as { name?: string; code?: unknown; status?: number };
  const { base } = server;
  const options = { cause: error };
  const proxy = proxyOf(env, base);
  const unreachable = unreached(env, server);
  if (name === "TimeoutError") {
    const through = proxy === undefined ? "" : ` through the proxy ${proxy}`;
    return new NetworkFault(`${base} did not answer${through} within ${timeout} s`, options);
  }
  if (code === "ECONNREFUSED" || code === "ConnectionRefused") {
    const isDefault = base === DEFAULT_SERVER && proxy === undefined;
    const hint = isDefault ? "; if your server is elsewhere: svc login --server URL" : "";
    return new NetworkFault(`${unreachable}: connection refused${hint}`, options);
  }
  if (code === "ENOTFOUND") return new NetworkFault(`${unreachable}: no such host`, options);
  if (code === "ERR_PROXY_TUNNEL")
    return new NetworkFault(
      `${unreachable}: ${status === 407 ? proxyWantsPassword : "the proxy refused the connection"}`,
      options,
    );
  if (code === "UnsupportedProxyProtocol")
    return new Unavailable(`${unreachable}: this is not an http or https address`, options);
  if (code === "EPROTO")
    return new NetworkFault(
      `${unreachable}: the TLS handshake failed; if the server speaks plain http there, use --server ${base.replace(/^https:/, "http:")}`,
      options,
    );
  const untimely = { CERT_HAS_EXPIRED: "has expired", CERT_NOT_YET_VALID: "is not valid yet" }[String(code)];
  if (untimely !== undefined)
    return new Unavailable(
      `the certificate of ${base} ${untimely}, or the clock of this machine is wrong: it says ${new Date().toISOString()}`,
      options,
    );
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return new Unavailable(`the certificate of ${base} is for another host name`, options);
  if (typeof code === "string" && /CERT|SIGNATURE|ISSUER/.test(code)) {
    return new Unavailable(
      `the certificate of ${base} is not trusted (${code}); if your own authority signed it, set NODE_EXTRA_CA_CERTS to its PEM file`,
      options,
    );
  }
  return new NetworkFault(`${unreachable}${typeof code === "string" ? ` (${code})` : ""}`, options);
}

/**
 * The error in an answer (RFC 9457 problem JSON, or an unknown format). Only what may pass by itself is Unavailable, so
 * that a caller who repeats a request does not repeat one that was refused permanently.
 */
export function problem({ status, headers, body }: Answer, server: Server): SvcError {
  if (status === 401) return unauthenticated(body, server);
  if (status === 429) return new TooManyRequests(retryAfter(headers) ?? 60);
  const detail =
    typeof body.detail === "string" ? printable(body.detail, 300) : `${server.base} answered HTTP ${status}`;
  const id = typeof body.request_id === "string" ? ` (request ${printable(body.request_id, 80)})` : "";
  const message = detail + id;
  // RFC 9110 15.5.9 and RFC 8470 5.2 allow the same request again. So does a server that says when.
  const isTransient = status === 408 || status === 425 || retryAfter(headers) !== undefined;
  if (status < 400 || status >= 500 || isTransient) return new Unavailable(message);
  if (status === 403) return new Forbidden(message);
  if (status === 404) {
    // A gateway knows nothing about our records: this does not mean that one of them is gone.
    if (typeof body.detail !== "string" && typeof body.code !== "string")
      return new Unavailable(`${message}; is it an svc server?`);
    if (body.detail !== noRoute) return new NotFound(message);
    const { origin, pathname } = new URL(server.base);
    if (pathname !== "/")
      return new NotFound(
        `${origin} is an svc server, but has nothing below ${pathname}: use --server ${origin}, unless a proxy removes that path${id}`,
      );
    return new NotFound(
      `${server.base} does not have what this command needs: it may run another release than this svc (${version})${id}`,
    );
  }
  if (status === 409 || status === 412) return new Conflict(message);
  return new InvalidInput(typeof body.field === "string" ? printable(body.field, 80) : "request", message);
}

function unauthenticated({ detail }: Answer["body"], { base, takesVariable, tls }: Server): Unauthenticated {
  const isExpired = String(detail).includes("access token has expired");
  if (takesVariable && isExpired)
    return new Unauthenticated("the token in SVC_TOKEN has expired; set a new one");
  if (takesVariable)
    return new Unauthenticated(`${base} does not accept the token in SVC_TOKEN; set a new one`);
  if (isExpired) return new Unauthenticated(`the sign-in to ${base} has expired; run svc login`);
  if (tls === undefined) return new Unauthenticated(`${base} does not accept this token; run svc login`);
  // The server gives no other reasons (platform/x509/refusal.ts).
  const [why] = /certificate has (expired|been revoked)/.exec(String(detail)) ?? [];
  return new Unauthenticated(
    `${base} does not accept this certificate${why ? ` (the ${why})` : ""}; run svc login --certificate`,
  );
}

/** The seconds in `Retry-After` (RFC 9110 10.2.3); dates are not supported. */
export function retryAfter(headers: Headers): number | undefined {
  const value = headers.get("retry-after")?.trim() ?? "";
  return /^\d{1,6}$/.test(value) ? Number(value) : undefined;
}
