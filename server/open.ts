import { warnOfDisagreement } from "../core/agreement.ts";
import { EventCounts } from "../core/audit.ts";
import { ChallengeWatch } from "../core/auth/challenge/watch.ts";
import { Keys } from "../core/auth/token/keys.ts";
import type { Config } from "../core/config.ts";
import { onDatabaseTime, runDueFlows } from "../core/incident/steps/run.ts";
import { KnownTokens } from "../core/known_tokens.ts";
import { openParts, type PartsOptions } from "../core/open.ts";
import { assertReady } from "../core/readiness.ts";
import { deleteExpired } from "../core/retention.ts";
import { openDatabase, shortStatements } from "../drizzle/client.ts";
import { Listener } from "../drizzle/connection/listener.ts";
import { databaseAnswer } from "../drizzle/database_answer.ts";
import { reasonOf } from "../drizzle/database_error.ts";
import { Background } from "../platform/background.ts";
import { systemClock } from "../platform/clock.ts";
import { readEnvironment } from "../platform/environment.ts";
import { ConfigurationError } from "../platform/errors.ts";
import { Verbosity } from "../platform/log.ts";
import { LogBudget } from "../platform/log_budget.ts";
import { metricsPlace } from "../platform/telemetry/endpoint.ts";
import { OrganisationAuthorities } from "../platform/x509/authorities.ts";
import { builtinPlugins } from "../plugins/builtin.ts";
import { createApp } from "./app.ts";
import type { Deps } from "./deps.ts";
import { proxyTrust } from "./http/address.ts";
import type { Service } from "./process/service.ts";
import { oidcSignOn } from "./sso/oidc.ts";
import { proxySignOn } from "./sso/proxy.ts";
import { Folder } from "./static/folder.ts";

/** Often, because strangers can create the rows it deletes. */
const cleanUpSeconds = 60;
/** A killed server loses at most this much of its counts. */
const flushSeconds = 600;
/** Log lines per reason. */
const handshakesPerMinute = 30;
/** Follow-up work of incidents that a dead process or failing plugin left undone. */
const flowSeconds = 15;

/** Everything that `createApp` needs, and how to close it. */
export interface ServerParts extends Deps {
  background: Background;
  counts: EventCounts;
  close(): Promise<void>;
}

/**
 * Builds the parts of a server without connecting to anything: `listener` is not started.
 * @throws ConfigurationError with every invalid setting
 */
export async function openServerParts(
  options: Omit<PartsOptions<never>, "builtin" | "clock" | "connect" | "counts"> &
    Partial<Pick<Deps, "clock">>,
): Promise<ServerParts> {
  const { clock = systemClock } = options;
  const counts = new EventCounts();
  const databaseAnswer = { at: Number.NEGATIVE_INFINITY };
  const answered = () => {
    databaseAnswer.at = performance.now();
  };
  const parts = await openParts(
    {
      ...options,
      clock,
      counts,
      builtin: builtinPlugins,
      connect: ({ url, poolSize, prepare, pooled, watch }) =>
        openDatabase(url, poolSize, watch?.("server", poolSize), {
          prepare,
          pooled,
          answered,
          ...shortStatements,
        }),
    },
    async (context, faults) => {
      const { config } = context;
      const keys = await faults.collect(() => new Keys(context));
      const sso = await faults.collect(() =>
        config.sso === "proxy" ? proxySignOn(context, fetch) : oidcSignOn(context, fetch),
      );
      const proxies = await faults.collect(() => proxyTrust(config.proxyHeaders, config.trustedProxies));
      const organisation = await faults.collect(() => organisationOf(config));
      await faults.collect(() => config.staticDir && Folder.open(config.staticDir));
      return { keys, sso, proxies, organisation };
    },
  );
  const { context, registry, plugins, more, close } = parts;
  const { config, log } = context;
  const listener = new Listener(config.databaseDirectUrl ?? config.databaseUrl!, log);
  const watch = new ChallengeWatch(listener);
  const tokens = new KnownTokens(listener);
  const background = new Background();
  return {
    ...context,
    ...more,
    counts,
    registry,
    plugins,
    listener,
    watch,
    tokens,
    databaseAnswer,
    background,
    close,
  };
}

/** @throws ConfigurationError */
async function organisationOf(config: Config): Promise<OrganisationAuthorities> {
  const { mtlsIdentity, mtlsUriPrefix, mtlsProxyHeader, proxyHeaders, trustedProxies } = config;
  if (mtlsIdentity === "uri" && !mtlsUriPrefix)
    throw new ConfigurationError(["SVC_MTLS_URI_PREFIX: needed with SVC_MTLS_IDENTITY=uri"]);
  if (mtlsProxyHeader && !proxyHeaders)
    throw new ConfigurationError(["SVC_MTLS_PROXY_HEADER needs --proxy-headers (SVC_PROXY_HEADERS)"]);
  // A certificate is public: anybody could send another user's.
  if (mtlsProxyHeader && trustedProxies.split(",").some((entry) => entry.trim() === "*"))
    throw new ConfigurationError([
      "SVC_MTLS_PROXY_HEADER: SVC_FORWARDED_ALLOW_IPS must name the proxies, not *",
    ]);
  return OrganisationAuthorities.open(config.mtlsCaCerts);
}

/**
 * Builds the server from the environment, and starts its background work. It opens no port; stopping the application
 * closes everything opened here. The database may still be down: /healthcheck reports that.
 *
 * @throws ConfigurationError with every invalid setting; Conflict when this release cannot work with the schema;
 * Unavailable when the database is read-only, or when its only address is a connection pooler's
 */
export async function openServer(): Promise<Service & ReturnType<typeof createApp>> {
  const parts = await openServerParts({ environment: readEnvironment(), telemetry: "svc-server" });
  const { db, clock, config, log, telemetry, keys, listener, counts, background } = parts;
  // While the database answers, the routes are built.
  const checked = assertReady(parts, keys);
  checked.catch(() => {});
  // It subscribes to the listener.
  const served = createApp(parts);
  try {
    await Promise.all([checked, listener.start()]);
  } catch (error) {
    await Promise.all([listener.stop(), parts.close()]);
    throw error;
  }
  const flush = () =>
    // With a timeout, so that a frozen database does not delay the shutdown.
    databaseAnswer(counts.flush(db, clock.now())).catch((error: unknown) =>
      log.warn({ err: error, ...reasonOf(error) }, "could not write counts into the audit log"),
    );
  const handshakes = new LogBudget(log, clock, "TLS handshakes", handshakesPerMinute);
  const stopChores = startChores(parts, flush);
  served.app.onStop(async () => {
    stopChores();
    await Promise.all([background.stop(), listener.stop()]);
    await flush();
    await parts.close();
  });
  const place = metricsPlace(config, "metricsPort");
  return {
    ...served,
    verbosity: new Verbosity(log),
    reload: () => parts.organisation.reload(),
    handshakeFailed(reason, address) {
      if (handshakes.admits(reason, { reason }))
        log.warn({ reason, address }, "TLS handshake failed on the mTLS port");
    },
    warnWithoutTls() {
      const { publicUrl, proxyHeaders, challengeLegacy } = config;
      if (publicUrl.startsWith("https:") && !proxyHeaders && challengeLegacy === "same_ip")
        log.warn(
          "SVC_PUBLIC_URL is https and --proxy-headers is off: if a proxy ends TLS, every client has its address, and SVC_CHALLENGE_LEGACY=same_ip cannot tell clients apart",
        );
    },
    flush: telemetry?.stop,
    metrics: place && telemetry?.scrape ? { ...place, scrape: telemetry.scrape } : undefined,
  };
}

/**
 * Starts the periodic background work.
 * @returns a function that stops it
 */
function startChores(parts: ServerParts, flush: () => Promise<unknown>): () => void {
  const { log, background } = parts;
  let cleaning = false;
  const cleanUp = () => {
    if (cleaning) return;
    cleaning = true;
    deleteExpired(parts)
      .catch((error: unknown) =>
        log.warn({ err: error, ...reasonOf(error) }, "could not delete expired rows"),
      )
      .finally(() => {
        cleaning = false;
      });
  };
  // Retry while the database is still down.
  let compared = false;
  const compareSettings = async () => {
    if (compared) return;
    try {
      await warnOfDisagreement(parts, { role: "server" });
      compared = true;
    } catch (error) {
      log.debug({ err: error }, "could not compare settings with the other processes");
    }
  };
  const runFlows = () => {
    background.add(compareSettings());
    background.add(onDatabaseTime(parts, runDueFlows));
  };
  runFlows();
  const timers = [
    setInterval(cleanUp, cleanUpSeconds * 1000),
    setInterval(flush, flushSeconds * 1000),
    setInterval(runFlows, flowSeconds * 1000),
  ];
  return () => timers.forEach(clearInterval);
}
