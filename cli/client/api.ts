import { treaty } from "@elysiajs/eden/treaty2";
import { Unavailable } from "../../platform/errors.ts";
import type { App } from "../../server/app.ts";
import type { Io } from "../io.ts";
import { readUser } from "./answer.ts";
import { type Answer, problem, request } from "./request.ts";
import { authorization, type Session } from "./session.ts";

type Authenticated = Pick<Session, "endpoint" | "token">;

/** The signed-in user, in the API's names. */
export interface Whoami {
  user: string;
  groups: string[];
  admin: boolean;
  expires_at: string;
}

/** @throws Unauthenticated if the server does not accept the token */
export async function whoami(io: Io, session: Authenticated, signal: AbortSignal): Promise<Whoami> {
  const { client, settle } = connect(io, session, signal);
  const body = settle(await client.whoami.get());
  const known = readWhoami(body);
  if (known === undefined) throw new Unavailable(`${session.endpoint.base} answered with an invalid user`);
  return known;
}

/** Revokes the token or certificate that is presented. */
export async function revoke(io: Io, session: Authenticated, signal: AbortSignal): Promise<void> {
  const { client, settle } = connect(io, session, signal);
  settle(await client.tokens.current.delete());
}

/** An answer as eden returns it. */
interface Outcome<T> {
  data: T | null;
  error: { value: unknown } | null;
}

/** A typed client that sends every request through `request`, so that its rules apply. */
function connect(io: Io, { endpoint, token }: Authenticated, signal: AbortSignal) {
  let answer: Answer | undefined;
  const fetcher = async (url: string, { method }: RequestInit) => {
    const headers = authorization({ token });
    answer = await request(io, endpoint, url, { method: method as "GET" | "DELETE", headers, signal });
    return answer.status === 204 ? new Response(null, { status: 204 }) : Response.json(answer.body, answer);
  };
  const client = treaty<App>(endpoint.base, { fetcher: fetcher as typeof fetch, parseDate: false });
  const settle = <T>({ data, error }: Outcome<T>): T | null => {
    if (error === null) return data;
    // eden wraps errors of the fetcher; ours are clearer.
    if (error.value instanceof Error || answer === undefined) throw error.value;
    throw problem(answer, endpoint);
  };
  return { client, settle };
}

function readWhoami(body: unknown): Whoami | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { user, groups, admin, expires_at: expiresAt } = body as Record<string, unknown>;
  const known = readUser(user);
  if (known === undefined || !Array.isArray(groups) || typeof admin !== "boolean") return undefined;
  const names = groups.map(readUser);
  if (!names.every((name) => name !== undefined)) return undefined;
  if (typeof expiresAt !== "string" || Number.isNaN(Date.parse(expiresAt))) return undefined;
  return { user: known, groups: names, admin, expires_at: new Date(expiresAt).toISOString() };
}
