import { signToken } from "../../../core/auth/token/issue.ts";
import { token } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import type { TestServer } from "./server.ts";

/** A client of the API, signed in or anonymous. */
export interface Person {
  call(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
    signal?: AbortSignal,
  ): Promise<ApiAnswer>;
  /** Opens a stream with GET. */
  open(path: string, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>;
}

export interface ApiAnswer {
  http: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests compare it with the expected value
  body: any;
  headers: Headers;
}

/** Signs a user in, or returns an anonymous client without `user`. String bodies are sent unchanged. */
export async function personOf(server: TestServer, user?: string, groups: string[] = []): Promise<Person> {
  const authorization = user && `Bearer ${await tokenOf(server, user, groups)}`;
  return {
    open: (path, more = {}, signal) =>
      server.fetch(path, { headers: { ...(authorization ? { authorization } : {}), ...more }, signal }),
    call: async (method, path, body, more = {}, signal) => {
      const response = await server.fetch(path, {
        method,
        signal,
        redirect: "manual",
        headers: {
          ...(authorization ? { authorization } : {}),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...more,
        },
        body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
      });
      const type = response.headers.get("content-type") ?? "";
      // Streams do not end by themselves.
      if (type.startsWith("text/event-stream")) {
        await response.body?.cancel();
        return { http: response.status, body: undefined, headers: response.headers };
      }
      const text = await response.text();
      const isJson = /json/.test(type);
      return {
        http: response.status,
        body: isJson ? JSON.parse(text) : text || undefined,
        headers: response.headers,
      };
    },
  };
}

/**
 * An access token like that of a sign-in (core/auth/challenge/collect.ts), in a tenth of its processor time. Tests of the
 * sign-in itself use `signInToken`.
 */
async function tokenOf(server: TestServer, user: string, groups: string[]): Promise<string> {
  const { db, clock, config, keys, issuer } = server;
  // For those who sign in later.
  issuer.user = user;
  issuer.claims = { email_verified: true, groups };
  const issuedAt = new Date(Math.floor(clock.now().getTime() / 1000) * 1000);
  const expiresAt = after(issuedAt, config.tokenLifetime);
  const claims = { jti: crypto.randomUUID(), groups, issuedAt, expiresAt };
  await db.insert(token).values({ ...claims, userName: user });
  return signToken(config, await keys.signing(), { ...claims, user });
}
