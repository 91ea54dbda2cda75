import { InvalidInput } from "../../core/errors.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { printable } from "../text.ts";
import { type Challenge, readChallenge } from "./answer.ts";
import { reasonNotToOpen } from "./browser.ts";
import { type Entry, withEntry } from "./credentials.ts";
import { updateCredentials } from "./credentials_file.ts";
import { awaitDecision } from "./poll.ts";
import { startProgress } from "./progress.ts";
import { type Answer, problem, request } from "./request.ts";
import type { Server } from "./server.ts";
import { fromKeychain, isExpired, openServer, storedToken } from "./session.ts";
import { newVerifier } from "./verifier.ts";

export interface LoginOptions {
  user?: string;
  server?: string;
  /** True and false: `--browser` and `--no-browser`. */
  browser?: boolean;
  force?: boolean;
  keychain?: boolean;
}

export interface SignedIn {
  server: string;
  user: string;
  expiresAt: Date;
  storage: "file" | "keychain";
  /** The token was there already and is still good. */
  reused: boolean;
}

/** Signs in through the browser and stores the token, or finds that this is not needed. */
export async function login(options: LoginOptions, io: Io): Promise<SignedIn> {
  const { server, credentials } = openServer(io, options.server);
  // Read before anything is asked of the person: what cannot be stored must not be signed in first.
  const entry = credentials().servers[server.base];
  if (!options.force) {
    const reused = await stillSignedIn(io, server, entry, options);
    if (reused !== undefined) return reused;
  }
  if (options.keychain) await fromKeychain(() => io.keychain.get(server.base));
  const user = checkUser(options.user ?? entry?.user ?? io.osUser());
  const { token, user: confirmed = user } = await io.interruptible((signal) =>
    signIn(io, server, user, options, signal),
  );
  const storage = options.keychain ? "keychain" : "file";
  if (storage === "keychain") await fromKeychain(() => io.keychain.set(server.base, token.token));
  else if (entry?.storage === "keychain")
    await fromKeychain(() => io.keychain.delete(server.base)).catch(() => {});
  const stored: Entry = { user: confirmed, storage, expires_at: token.expiresAt.toISOString() };
  if (storage === "file") stored.token = token.token;
  updateCredentials(io.env, (all) => withEntry(all, server.base, stored));
  if (io.env.SVC_TOKEN) {
    io.stderr.write("svc: warning: SVC_TOKEN is set and goes before the token that was stored now\n");
  }
  return { server: server.base, user: confirmed, expiresAt: token.expiresAt, storage, reused: false };
}

/** The stored sign-in, if it is the wanted user's, has not expired here and the server takes it. */
async function stillSignedIn(
  io: Io,
  server: Server,
  entry: Entry | undefined,
  options: LoginOptions,
): Promise<SignedIn | undefined> {
  if (entry?.storage === undefined || !isSameUser(options.user, entry.user)) return undefined;
  if (options.keychain && entry.storage !== "keychain") return undefined;
  const token = await storedToken(io, server, entry);
  if (token === undefined || isExpired(token, io)) return undefined;
  const headers = { authorization: `Bearer ${token.token}` };
  const answer = await io.interruptible((signal) =>
    request(io, server, `${server.base}/whoami`, { headers, signal }),
  );
  if (answer.status === 401) return undefined;
  return {
    server: server.base,
    user: entry.user,
    expiresAt: token.expiresAt,
    storage: entry.storage,
    reused: true,
  };
}

async function signIn(io: Io, server: Server, user: string, options: LoginOptions, signal: AbortSignal) {
  const { verifier, challenge: hash } = newVerifier();
  const query = new URLSearchParams({ code_challenge: hash, code_challenge_method: "S256" });
  const url = `${server.base}/noauth/v1/challenge_generator/${encodeURIComponent(user)}?${query}`;
  const answer = await request(io, server, url, { signal });
  if (answer.status !== 200) throw generatorProblem(answer, server);
  const challenge = readChallenge(answer.body, server);
  const deadline = new Date(io.clock.now().getTime() + challenge.lifetime * 1000);
  io.stderr.write(invitation(challenge, server, user));
  const reason = reasonNotToOpen(options.browser, io.env, io.platform);
  if (reason === "ssh")
    io.stderr.write("No browser is opened over SSH; --browser opens one there all the same.\n");
  if (reason === "no-display") io.stderr.write("No browser is opened: there is no display.\n");
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

/** The address and the code come first: everything after them can fail, and the person can still go on. */
function invitation({ challengeUrl, userCode }: Challenge, server: Server, user: string): string {
  const code = userCode === undefined ? "" : `\nThe page must show this code: ${userCode}\n`;
  return `To sign in to ${server.base} as ${user}, open\n\n  ${challengeUrl}\n${code}\n`;
}

function generatorProblem(answer: Answer, server: Server) {
  if (answer.status === 400 || answer.status === 422)
    return new InvalidInput("user", problem(answer, server).detail);
  return problem(answer, server);
}

/** A name that survives being a segment of a path; what else it must be is for the server to say. */
function checkUser(user: string): string {
  const name = user.trim();
  if (name === "") throw new UsageError("missing argument: USER");
  // As path segments these two mean directories, even percent-encoded (WHATWG URL).
  if (name === "." || name === ".." || name.length > 256 || printable(name) !== name) {
    throw new UsageError(`USER: "${printable(name, 40)}" is not a user name`);
  }
  return name;
}

/** Names are compared as the server does: case does not count, and it completes a bare name with its domain. */
function isSameUser(wanted: string | undefined, stored: string): boolean {
  if (wanted === undefined) return true;
  const [a, b] = [wanted.trim().toLowerCase(), stored.toLowerCase()];
  return a === b || (!a.includes("@") && b.startsWith(`${a}@`));
}
