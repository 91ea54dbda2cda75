import { signInToken, type TestServer } from "./server.ts";

/** Somebody who is signed in, or nobody: how they call the API. */
export interface Person {
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiAnswer>;
  /** A GET whose answer does not end: of a stream. */
  open(path: string, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>;
}

export interface ApiAnswer {
  http: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test compares it with what it expects
  body: any;
  headers: Headers;
}

/** Signs in through the issuer; `undefined` is nobody. A body that is a string goes as it stands. */
export async function personOf(server: TestServer, user?: string, groups: string[] = []): Promise<Person> {
  const authorization = user && `Bearer ${await tokenOf(server, user, groups)}`;
  return {
    open: (path, more = {}, signal) =>
      server.fetch(path, { headers: { ...(authorization ? { authorization } : {}), ...more }, signal }),
    call: async (method, path, body, more = {}) => {
      const response = await server.fetch(path, {
        method,
        headers: {
          ...(authorization ? { authorization } : {}),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...more,
        },
        body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
      });
      const type = response.headers.get("content-type") ?? "";
      // A stream does not end by itself.
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

async function tokenOf(server: TestServer, user: string, groups: string[]): Promise<string> {
  server.issuer.user = user;
  server.issuer.claims = { email_verified: true, groups };
  return signInToken(server);
}
