import { Unauthenticated, Unavailable } from "../../platform/errors.ts";
import type { Io } from "../io.ts";
import { readUser } from "./answer.ts";
import { type Answer, largestAnswer, problem, request } from "./request.ts";
import type { Server } from "./server.ts";
import type { AccessToken } from "./token.ts";
import { authorization, type Session } from "./token.ts";

type Authenticated = Pick<Session, "endpoint" | "token">;

/** The signed-in user, in the API's names. */
export interface Whoami {
  user: string;
  /** Any text: an older server also stored groups that a terminal cannot show. */
  groups: string[];
  admin: boolean;
  expires_at: string;
}

/** @throws Unauthenticated if the server does not accept the token */
export async function whoami(io: Io, session: Authenticated, signal: AbortSignal): Promise<Whoami> {
  const known = readWhoami(await send(io, session, "GET", "/whoami", signal));
  if (known === undefined) throw new Unavailable(`${session.endpoint.base} answered with an invalid user`);
  return known;
}

/** Revokes the token or certificate that is presented. */
export async function revoke(io: Io, session: Authenticated, signal: AbortSignal): Promise<void> {
  await send(io, session, "DELETE", "/tokens/current", signal);
}

/** Revokes a token. @returns false if it was no longer valid */
export async function revokeToken(io: Io, endpoint: Server, token: AccessToken): Promise<boolean> {
  try {
    await io.interruptible((signal) => revoke(io, { endpoint, token }, signal));
    return true;
  } catch (error) {
    if (error instanceof Unauthenticated) return false;
    throw error;
  }
}

async function send(
  io: Io,
  { endpoint, token }: Authenticated,
  method: "GET" | "DELETE",
  path: string,
  signal: AbortSignal,
): Promise<Answer["body"]> {
  const headers = authorization({ token });
  const answer = await request(io, endpoint, `${endpoint.base}${path}`, {
    method,
    headers,
    signal,
    largest: largestAnswer,
  });
  if (answer.status >= 400) throw problem(answer, endpoint);
  return answer.body;
}

function readWhoami(body: Answer["body"]): Whoami | undefined {
  const { user, groups, admin, expires_at: expiresAt } = body;
  const known = readUser(user);
  if (known === undefined || !Array.isArray(groups) || typeof admin !== "boolean") return undefined;
  // One odd group must not make the session unusable.
  const names = groups.map((group) => (typeof group === "string" ? group : JSON.stringify(group)));
  if (typeof expiresAt !== "string" || Number.isNaN(Date.parse(expiresAt))) return undefined;
  return { user: known, groups: names, admin, expires_at: new Date(expiresAt).toISOString() };
}
