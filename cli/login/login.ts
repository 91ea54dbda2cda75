import { ConfigurationError, SvcError, Unauthenticated } from "../../platform/errors.ts";
import { newSecret } from "../../platform/secret.ts";
import { type Challenge, readChallenge, UnusableToken } from "../client/answer.ts";
import { revokeToken, whoami } from "../client/api.ts";
import type { CertificateInfo, obtainCertificate } from "../client/certificate.ts";
import { type Entry, withEntry } from "../client/credentials.ts";
import { assertStorable, updateCredentials } from "../client/credentials_file.ts";
import { fromKeychain } from "../client/private_file.ts";
import { type Answer, problem, request, retryAfter } from "../client/request.ts";
import type { Server } from "../client/server.ts";
import { clockAhead, offsetText } from "../client/server_clock.ts";
import { isExpired, openServer, storedToken } from "../client/session.ts";
import { type AccessToken, readToken } from "../client/token.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { startProgress } from "../progress.ts";
import { printable } from "../text.ts";
import { localTime } from "../when.ts";
import { reasonNotToOpen } from "./browser.ts";
import { awaitDecision } from "./poll.ts";

export interface LoginOptions {
  user?: string;
  /** True for `--browser`, false for `--no-browser`. */
  browser?: boolean;
  force?: boolean;
  keychain?: boolean;
  /** Also get a client certificate. */
  certificate?: boolean;
}

export interface SignedIn {
  server: string;
  user: string;
  expiresAt: Date;
  storage: "file" | "keychain";
  /** The stored token, or certificate, is still valid. */
  reused: boolean;
  certificate?: CertificateInfo;
}

/**
 * Signs in through the browser and stores the token, unless the stored one is still valid. The token that it replaces is
 * revoked, and so is one that could not be stored.
 */
export async function login(options: LoginOptions, io: Io): Promise<SignedIn> {
  const { server, credentials } = openServer(io);
  // Read first: the user must not approve a sign-in that cannot be stored.
  const entry = credentials().servers[server.base];
  if (!options.force) {
    const reused = await (options.certificate ? stillCertified : stillSignedIn)(io, server, entry, options);
    if (reused !== undefined) return reused;
  }
  const user = checkUser(options.user ?? entry?.user ?? io.osUser());
  const storage = options.keychain ? "keychain" : "file";
  await checkStorage(io, server, storage);
  const { token, user: confirmed = user } = await io
    .interruptible((signal) => signIn(io, server, user, options, signal))
    .catch(async (error: unknown) => {
      throw error instanceof UnusableToken ? await takenBack(io, server, error.token, error) : error;
    });
  const before = await store(io, server, { token, user: confirmed, storage });
  const { token: replaced } = before;
  if (replaced && replaced.token !== token.token) await revokeReplaced(io, server, replaced);
  const own = await withoutOther(io, server, confirmed, before.entry);
  const certificate = options.certificate
    ? await certify(io, server, { token, user: confirmed, storage, before: own })
    : undefined;
  if (io.env.SVC_TOKEN) {
    io.stderr.write("svc: warning: SVC_TOKEN is set and takes precedence over the token stored now\n");
  }
  const { expiresAt } = token;
  return { server: server.base, user: confirmed, expiresAt, storage, reused: false, certificate };
}

/** Gets a certificate with the token of a sign-in. @throws SvcError; the sign-in is stored nevertheless */
async function certify(
  io: Io,
  server: Server,
  wanted: Parameters<typeof obtainCertificate>[2],
): Promise<CertificateInfo> {
  const { describeCertificate, obtainCertificate } = await import("../client/certificate.ts");
  try {
    return describeCertificate(io.env, server.base, await obtainCertificate(io, server, wanted));
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    throw new SvcError(error.code, `signed in, but without a certificate: ${error.detail}`, { cause: error });
  }
}

/** Ends another user's certificate, which would continue to authenticate as that user. @returns the entry without it */
async function withoutOther(
  io: Io,
  server: Server,
  user: string,
  before: Entry | undefined,
): Promise<Entry | undefined> {
  if (before?.certificate === undefined || before.certificate.user === user) return before;
  const { endCertificate } = await import("../client/certificate.ts");
  const { fault } = await endCertificate(io, server, before, undefined);
  if (fault !== undefined)
    io.stderr.write(`svc: warning: the certificate of ${before.certificate.user}: ${fault}\n`);
  return undefined;
}

/** Returns the stored certificate, if it is the wanted user's and the server accepts it. */
async function stillCertified(
  io: Io,
  server: Server,
  entry: Entry | undefined,
  options: LoginOptions,
): Promise<SignedIn | undefined> {
  const stored = entry?.certificate;
  const storage = options.keychain ? "keychain" : "file";
  if (stored?.key !== storage || !isSameUser(options.user, stored.user)) return undefined;
  const { describeCertificate, openCertificate } = await import("../client/certificate.ts");
  try {
    const session = await openCertificate(io, server, entry);
    await io.interruptible((signal) => whoami(io, session, signal));
    const expiresAt = new Date(stored.sign_in_expires_at);
    const certificate = describeCertificate(io.env, server.base, stored);
    return { server: server.base, user: stored.user, expiresAt, storage, reused: true, certificate };
  } catch (error) {
    if (error instanceof SvcError) return undefined;
    throw error;
  }
}

/** Checks that a token can be stored, before the user is asked to approve. */
async function checkStorage(io: Io, server: Server, storage: "file" | "keychain"): Promise<void> {
  // The file has an entry for a token in the keychain, too.
  assertStorable(io.env);
  if (storage === "file") return;
  const probe = `${server.base} (check)`;
  await fromKeychain(async () => {
    await io.keychain.set(probe, "check");
    await io.keychain.delete(probe);
  });
}

/**
 * Stores the token. If that fails, the token is revoked, because nothing would ever use or revoke it. A certificate stays
 * until another one replaces it.
 * @returns the previous token and entry
 */
async function store(
  io: Io,
  server: Server,
  { token, user, storage }: { token: AccessToken; user: string; storage: "file" | "keychain" },
): Promise<{ token?: AccessToken; entry?: Entry }> {
  const stored: Entry = { user, storage, expires_at: token.expiresAt.toISOString() };
  if (storage === "file") stored.token = token.token;
  try {
    // Another process may have stored this one while we waited.
    const kept = await io.keychain.get(server.base).catch(() => null);
    if (storage === "keychain") await fromKeychain(() => io.keychain.set(server.base, token.token));
    let before: Entry | undefined;
    updateCredentials(io.env, (all) => {
      before = all.servers[server.base];
      return withEntry(all, server.base, { ...stored, certificate: before?.certificate });
    });
    if (before?.storage !== "keychain") return { token: readToken(before?.token), entry: before };
    if (storage === "file") await io.keychain.delete(server.base).catch(() => {});
    return { token: readToken(kept), entry: before };
  } catch (error) {
    throw await takenBack(io, server, token, error);
  }
}

/** Revokes a token that cannot be stored. @returns the error to show, which says whether that worked */
async function takenBack(io: Io, server: Server, token: AccessToken, error: unknown): Promise<unknown> {
  const outcome = await revokeToken(io, server, token).then(
    () => "the token was revoked",
    (cause: Error) => `the token could not be revoked (${cause.message}) and is ${validUntil(token)}`,
  );
  if (!(error instanceof SvcError)) return error;
  return new SvcError(error.code, `${error.detail}; ${outcome}`, { cause: error });
}

/** Revokes a token that was replaced. The new sign-in is valid even if the server cannot be reached now. */
async function revokeReplaced(io: Io, server: Server, token: AccessToken): Promise<void> {
  if (await isExpired(io, server, token)) return;
  await revokeToken(io, server, token).catch((error: Error) => {
    io.stderr.write(
      `svc: warning: the replaced token could not be revoked (${error.message}) and is ${validUntil(token)}\n`,
    );
  });
}

const validUntil = (token: AccessToken) => `valid until ${localTime(token.expiresAt)}`;

/**
 * Returns the stored sign-in, if it is the wanted user's, has not expired and the server accepts it.
 *
 * @throws SvcError if the server neither accepts nor refuses it
 */
async function stillSignedIn(
  io: Io,
  server: Server,
  entry: Entry | undefined,
  options: LoginOptions,
): Promise<SignedIn | undefined> {
  if (entry?.storage === undefined || !isSameUser(options.user, entry.user)) return undefined;
  if (options.keychain && entry.storage !== "keychain") return undefined;
  const token = await storedToken(io, server, entry);
  if (token === undefined || (await isExpired(io, server, token))) return undefined;
  try {
    await io.interruptible((signal) => whoami(io, { endpoint: server, token }, signal));
  } catch (error) {
    if (error instanceof Unauthenticated) return undefined;
    throw error;
  }
  const { user, storage } = entry;
  return { server: server.base, user, expiresAt: token.expiresAt, storage, reused: true };
}

async function signIn(io: Io, server: Server, user: string, options: LoginOptions, signal: AbortSignal) {
  const { verifier, challenge: hash } = newVerifier();
  const query = new URLSearchParams({ code_challenge: hash, code_challenge_method: "S256" });
  const url = `${server.base}/noauth/v1/challenge_generator/${encodeURIComponent(user)}?${query}`;
  const answer = await requestPatiently(io, server, url, signal);
  if (answer.status !== 200) throw problem(answer, server);
  const challenge = readChallenge(answer.body, server);
  // Before the user is asked to approve.
  if (options.certificate && challenge.certificates === false)
    throw new ConfigurationError([
      `${server.base} does not accept client certificates (--mtls-port or SVC_MTLS_URL); to sign in without one: svc login`,
    ]);
  const deadline = new Date(io.clock.now().getTime() + challenge.lifetime * 1000);
  io.stderr.write(invitation(challenge, server, user));
  const ahead = clockAhead(io);
  if (Math.abs(ahead) >= tellingOffset)
    io.stderr.write(
      `The clock of this machine is ${offsetText(ahead)} that of ${server.base}, whose time svc uses.\n\n`,
    );
  const reason = reasonNotToOpen(options.browser, io.env, io.platform);
  if (reason === "ssh") io.stderr.write("Not opening a browser over SSH; use --browser to open one.\n");
  if (reason === "no-display") io.stderr.write("Not opening a browser: there is no display.\n");
  const opened = reason === undefined ? io.openBrowser(challenge.challengeUrl, io.env) : undefined;
  const progress = await startProgress(io, "Waiting for your approval in the browser", deadline);
  let waiting = true;
  void opened?.failed.then((why) => {
    if (waiting) progress.note(`The browser did not open (${why}). Open the address above yourself.`);
  });
  const stop = () => {
    waiting = false;
    progress.stop();
  };
  // Ctrl-C does not wait for the `finally` below: the cursor must be back before the process ends.
  signal.addEventListener("abort", stop);
  try {
    return await awaitDecision(io, server, challenge, { verifier, signal, note: progress.note });
  } finally {
    stop();
  }
}

/** Milliseconds. */
const tellingOffset = 60_000;
/** Seconds in total that a busy server may make us wait. */
const LONGEST_WAIT = 600;

/** Sends a request, and repeats it after the time that a busy server asks for (429, or 503 with Retry-After). */
async function requestPatiently(io: Io, server: Server, url: string, signal: AbortSignal): Promise<Answer> {
  let waited = 0;
  let said = false;
  for (;;) {
    const answer = await request(io, server, url, { signal });
    const asked = retryAfter(answer.headers);
    const busy = answer.status === 429 || (answer.status === 503 && asked !== undefined);
    const pause = Math.max(1, asked ?? 1) * 1000;
    waited += pause;
    if (!busy || waited > LONGEST_WAIT * 1000) return answer;
    if (!said) {
      const why =
        answer.status === 429 ? "too many sign-in requests from this address" : "the server is busy";
      io.stderr.write(
        `Waiting ${pause / 1000} s at the request of ${server.base}: ${why}. Press Ctrl-C to cancel.\n`,
      );
      said = true;
    }
    await io.sleep(pause, signal);
  }
}

/** The address and the code come first: if anything after them fails, the user can still continue. */
function invitation({ challengeUrl, userCode }: Challenge, server: Server, user: string): string {
  const code = userCode === undefined ? "" : `\nThe page must show this code: ${userCode}\n`;
  return `To sign in to ${server.base} as ${user}, open\n\n  ${challengeUrl}\n${code}\n`;
}

/** Requires a name that is safe as a segment of a path; the server checks the rest. */
function checkUser(user: string): string {
  const name = user.trim();
  if (name === "") throw new UsageError("missing argument: USER (USER and LOGNAME are not set)");
  // As path segments, these two are relative, even percent-encoded (WHATWG URL).
  if (name === "." || name === ".." || name.length > 256 || printable(name) !== name) {
    throw new UsageError(`USER: "${printable(name, 40)}" is not a user name`);
  }
  return name;
}

/** Compares names as the server does, which ignores case, and completes a bare name with its domain. */
function isSameUser(wanted: string | undefined, stored: string): boolean {
  if (wanted === undefined) return true;
  const [a, b] = [wanted.trim().toLowerCase(), stored.toLowerCase()];
  return a === b || (!a.includes("@") && b.startsWith(`${a}@`));
}

/** The secret that binds a sign-in to this process, and what the server may know of it (RFC 7636, S256). */
export function newVerifier(): { verifier: string; challenge: string } {
  const verifier = newSecret();
  return { verifier, challenge: new Bun.CryptoHasher("sha256").update(verifier).digest("base64url") };
}
