import { eq } from "drizzle-orm";
import type { EventCounts } from "../../../core/audit.ts";
import type { ChallengeWatch } from "../../../core/auth/challenge/watch.ts";
import type { Keys } from "../../../core/auth/token/keys.ts";
import { type Config, readConfig } from "../../../core/config.ts";
import type { Plugins } from "../../../core/plugin/choose.ts";
import type { Database } from "../../../drizzle/client.ts";
import { challenge as challengeTable } from "../../../drizzle/schema/index.ts";
import type { Telemetry } from "../../../platform/telemetry/telemetry.ts";
import type { OrganisationAuthorities } from "../../../platform/x509/authorities.ts";
import { type App, createApp } from "../../../server/app.ts";
import { openServerParts } from "../../../server/open.ts";
import { TestBrowser } from "../browser/browser.ts";
import { TestClock } from "../clock.ts";
import { createTestDatabase } from "../database/database.ts";
import { noPlugins } from "../domain/plugins.ts";
import { recordingLog } from "../log.ts";
import { until } from "../process/until.ts";
import { startTestIssuer, type TestIssuer } from "./issuer.ts";

export interface TestServer {
  url: string;
  clock: TestClock;
  config: Config;
  db: Database;
  issuer: TestIssuer;
  databaseUrl: string;
  watch: ChallengeWatch;
  counts: EventCounts;
  keys: Keys;
  organisation: OrganisationAuthorities;
  /** All log lines, at every level. */
  logged: string[];
  app: App;
  /** Sends a request to the server. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Starts another server on the same database, like a second process. */
  another(overrides?: Partial<Config>): Promise<TestServer>;
  [Symbol.asyncDispose](): Promise<void>;
}

interface Shared {
  clock: TestClock;
  issuer: TestIssuer;
  databaseUrl: string;
  publicUrl?: string;
  plugins?: Plugins;
  telemetry?: Telemetry;
}

/** Starts a real server on a real database, with a real but obliging issuer. Only the clock is fake. */
export async function startTestServer(
  overrides: Partial<Config> = {},
  /** Replaces the configured plugins. */
  plugins?: Plugins,
  telemetry?: Telemetry,
): Promise<TestServer> {
  const database = await createTestDatabase();
  const issuer = await startTestIssuer();
  const server = await start(overrides, {
    clock: new TestClock(),
    issuer,
    databaseUrl: database.url,
    plugins,
    telemetry,
  });
  return {
    ...server,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      issuer.stop();
      await database[Symbol.asyncDispose]();
    },
  };
}

async function start(overrides: Partial<Config>, shared: Shared): Promise<TestServer> {
  const { clock, issuer, databaseUrl, telemetry } = shared;
  // Shared with the server until it listens, so that nobody else gets this port.
  const kept = Bun.serve({ port: 0, hostname: "127.0.0.1", reusePort: true, fetch: () => new Response() });
  const port = kept.port!;
  const config: Config = {
    ...readConfig(noPlugins),
    databaseUrl,
    publicUrl: shared.publicUrl ?? `http://127.0.0.1:${port}`,
    domain: "example.com",
    oidcIssuer: issuer.url,
    oidcClientSecret: "issuer-client-secret",
    keySecret: "a-secret-for-tests-of-thirty-two-characters",
    ...overrides,
  };
  const { log, logged } = recordingLog();
  const parts = await openServerParts({
    environment: {},
    config,
    log,
    telemetry,
    clock,
    plugins: shared.plugins,
  });
  const { watch, counts, keys, organisation } = parts;
  const db = parts.db as Database;
  const { app, drain } = createApp(parts);
  await parts.listener.start();
  // The time in its answers is that of its clock, unless the test has set that to the real time, for processes.
  app.onRequest(({ set }) => {
    const now = clock.now();
    if (Math.abs(now.getTime() - Date.now()) > 3_600_000) set.headers.date = now.toUTCString();
  });
  app.listen({ port, hostname: "127.0.0.1", reusePort: true });
  await kept.stop(true);
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    clock,
    config,
    db,
    issuer,
    databaseUrl,
    watch,
    counts,
    keys,
    organisation,
    logged,
    app,
    fetch: async (path, init) => {
      const response = await fetch(url + path, { redirect: "manual", ...init });
      if (response.status === 500) printErrors(logged, response.headers.get("x-request-id"));
      return response;
    },
    another: (more = {}) => start({ ...overrides, ...more }, { ...shared, publicUrl: config.publicUrl }),
    [Symbol.asyncDispose]: async () => {
      await drain();
      await app.stop(true);
      await parts.close();
    },
  };
}

/** The environment of a separate `svc` with the database, issuer and secrets of a test server. */
export function environmentOf({ config, databaseUrl, issuer, url }: TestServer) {
  return {
    SVC_DATABASE_URL: databaseUrl,
    SVC_DOMAIN: config.domain,
    SVC_PUBLIC_URL: url,
    SVC_OIDC_ISSUER: issuer.url,
    SVC_OIDC_CLIENT_SECRET: config.oidcClientSecret,
    SVC_KEY_SECRET: config.keySecret,
  };
}

/** Prints the cause of an internal error. The answer only refers to the log, which a test's server keeps in memory. */
function printErrors(logged: readonly string[], requestId: string | null): void {
  for (const line of logged) {
    const { err, request_id: id } = JSON.parse(line);
    if (err && id === requestId) console.error(`request ${id} failed:`, err);
  }
}

export interface TestChallenge {
  challengeUrl: string;
  pollPath: string;
  token: string;
  verifier?: string;
  userCode?: string;
}

/** Requests a challenge, as a bound client unless `legacy`. */
export async function newChallenge(
  server: TestServer,
  { user = "alice@example.com", legacy = false, headers = {} as Record<string, string> } = {},
): Promise<TestChallenge> {
  const verifier = legacy
    ? undefined
    : Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
  const hash = verifier && new Bun.CryptoHasher("sha256").update(verifier).digest("base64url");
  const query = hash ? `?code_challenge=${hash}&code_challenge_method=S256` : "";
  const response = await server.fetch(`/noauth/v1/challenge_generator/${encodeURIComponent(user)}${query}`, {
    headers,
  });
  if (response.status !== 200) throw new Error(`no challenge: ${response.status} ${await response.text()}`);
  const body = (await response.json()) as Record<string, string>;
  return {
    challengeUrl: body.challenge_url!,
    pollPath: new URL(body.polling_url!).pathname,
    token: body.polling_url!.split("/").at(-1)!,
    verifier,
    userCode: body.user_code,
  };
}

/** Polls once. */
export async function poll(
  server: Pick<TestServer, "fetch">,
  { pollPath, verifier }: TestChallenge,
  init: RequestInit = {},
): Promise<{ http: number; body: Record<string, unknown>; headers: Headers }> {
  const headers = {
    ...(verifier ? { authorization: `Challenge ${verifier}` } : {}),
    ...(init.headers as object),
  };
  const response = await server.fetch(pollPath, { ...init, headers });
  return {
    http: response.status,
    body: (await response.json()) as Record<string, unknown>,
    headers: response.headers,
  };
}

/** Opens the challenge in a browser, signs in at the issuer and decides. */
export async function decide(
  challenge: TestChallenge,
  decision: "approve" | "deny",
  browser = new TestBrowser(),
): Promise<Response> {
  const { url, text } = await browser.open(challenge.challengeUrl);
  return browser.submit(url, text, { decision });
}

/** A valid access token for the issuer's user. */
export async function signInToken(server: TestServer): Promise<string> {
  const challenge = await newChallenge(server, { user: server.issuer.user });
  await decide(challenge, "approve");
  const { body } = await poll(server, challenge);
  return body.encoded_jwt as string;
}

/**
 * Polls until the server remembers the challenge. A message that arrives during a poll keeps it from that, such as one about
 * a challenge that was decided before.
 */
export function pollUntilRemembered(server: TestServer, challenge: TestChallenge, init?: RequestInit) {
  return until("the challenge to be remembered", async () => {
    await poll(server, challenge, init);
    return server.watch.recall(server.url + challenge.pollPath);
  });
}

/** The database row of a challenge. */
export async function rowOf({ db }: Pick<TestServer, "db">, { token }: TestChallenge) {
  const hash = new Bun.CryptoHasher("sha256").update(token).digest();
  const [row] = await db.select().from(challengeTable).where(eq(challengeTable.tokenHash, hash));
  return row!;
}
