import { after } from "../../platform/clock.ts";
import { ConfigurationError, SvcError, Unauthenticated } from "../../platform/errors.ts";
import type { Io } from "../io.ts";
import type { Credentials, Entry } from "./credentials.ts";
import { readCredentials } from "./credentials_file.ts";
import { fromKeychain } from "./private_file.ts";
import { chooseServer, plainHttpWarning, type Server } from "./server.ts";
import { askServerClock } from "./server_clock.ts";
import { type AccessToken, readToken, type Session } from "./token.ts";

interface Chosen {
  server: Server;
  /** Reads the file when it is first called. */
  credentials: () => Credentials;
}

/** The server to use, and the stored credentials. */
export function chosenServer({ env, server }: Pick<Io, "env" | "server">): Chosen {
  let read: Credentials | undefined;
  const credentials = () => {
    read ??= readCredentials(env);
    return read;
  };
  return { server: chooseServer(server, env.SVC_SERVER, () => credentials().last), credentials };
}

/** Like `chosenServer`, with a warning if others can read what is sent. */
export function openServer(io: Io): Chosen {
  const chosen = chosenServer(io);
  const warning = plainHttpWarning(chosen.server);
  if (warning !== undefined) io.stderr.write(`svc: ${warning}\n`);
  return chosen;
}

/**
 * The session at the chosen server: with `--certificate` by the stored client certificate; else by SVC_TOKEN, or the
 * stored token.
 * @throws Unauthenticated if there is none, or it has expired
 */
export async function currentSession(io: Io): Promise<Session> {
  const { server, credentials } = openServer(io);
  if (io.certificate) {
    const { openCertificate } = await import("./certificate.ts");
    return { server, ...(await openCertificate(io, server, credentials().servers[server.base])) };
  }
  const given = io.env.SVC_TOKEN?.trim();
  if (given) {
    const token = readToken(given);
    if (token === undefined)
      throw new ConfigurationError(["SVC_TOKEN is not an access token (a JWT that expires)"]);
    if (await isExpired(io, server, token))
      throw new Unauthenticated("the token in SVC_TOKEN has expired; set a new one");
    const { subject: user, expiresAt } = token;
    const endpoint = { ...server, takesVariable: true } as const;
    return { server, endpoint, token, expiresAt, user, source: "SVC_TOKEN" };
  }
  const entry = credentials().servers[server.base];
  const token = entry && (await storedToken(io, server, entry));
  if (entry === undefined || token === undefined) {
    throw new Unauthenticated(`not signed in to ${server.base}; run svc login`);
  }
  if (await isExpired(io, server, token))
    throw new Unauthenticated(`the sign-in to ${server.base} has expired; run svc login`);
  const { user, storage: source = "file" } = entry;
  return { server, endpoint: server, token, expiresAt: token.expiresAt, user, source };
}

const renewalCheckMilliseconds = 10 * 60_000;
const renewalChecks = new WeakMap<Session, number>();

/**
 * Renews a session's certificate if that is due: a command may run for longer than its certificate is valid, and an expired
 * certificate cannot be renewed. Call it before each request; most calls do nothing.
 */
export async function renewInTime(session: Session, io: Io): Promise<void> {
  if (session.source !== "certificate") return;
  const now = io.clock.now().getTime();
  // The certificate of a session that was just opened has been renewed if necessary.
  const checked = renewalChecks.get(session) ?? now;
  const isDue = now - checked >= renewalCheckMilliseconds;
  renewalChecks.set(session, isDue ? now : checked);
  if (!isDue) return;
  // If this fails, the certificate is still valid, or the server says what is wrong with it.
  await renewSession(session, io).catch((error: unknown) => {
    if (!(error instanceof SvcError)) throw error;
  });
}

/**
 * Switches to a newer token or certificate, if the same user has signed in again in another terminal.
 * @returns whether there was one
 */
export async function renewSession(session: Session, io: Io): Promise<boolean> {
  if (session.source === "SVC_TOKEN") return false;
  const { base } = session.server;
  const entry = readCredentials(io.env).servers[base];
  if (session.source === "certificate") {
    const { openCertificate } = await import("./certificate.ts");
    if (entry?.certificate?.user !== session.user) return false;
    const opened = await openCertificate(io, session.server, entry);
    if (opened.endpoint.tls?.cert === session.endpoint.tls?.cert) return false;
    Object.assign(session, opened);
    return true;
  }
  if (entry === undefined || entry.user !== session.user) return false;
  const token = await storedToken(io, session.server, entry);
  if (token === undefined || token.token === session.token?.token) return false;
  if (await isExpired(io, session.server, token)) return false;
  Object.assign(session, { token, expiresAt: token.expiresAt });
  return true;
}

/** Reads the token of an entry from the file or the keychain. */
export async function storedToken(io: Io, server: Server, entry: Entry): Promise<AccessToken | undefined> {
  if (entry.storage === "keychain") return readToken(await fromKeychain(() => io.keychain.get(server.base)));
  return readToken(entry.token);
}

/** Whether a token has expired by the server's clock, which is asked if that of this machine does not fit the token. */
export async function isExpired(io: Io, server: Server, token: AccessToken): Promise<boolean> {
  const { expiresAt, issuedAt = new Date(0) } = token;
  if (expiresAt <= io.clock.now() || issuedAt > after(io.clock.now(), 60)) await askServerClock(io, server);
  return expiresAt <= io.clock.now();
}
