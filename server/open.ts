import { warnOfDisagreement } from "../core/agreement.ts";
import { EventCounts } from "../core/audit.ts";
import { ChallengeWatch } from "../core/auth/challenge/watch.ts";
import { Keys } from "../core/auth/token/keys.ts";
import { runDueFlows } from "../core/incident/steps/run.ts";
import { openParts, type PartsOptions } from "../core/open.ts";
import { assertReady } from "../core/readiness.ts";
import { deleteExpired } from "../core/retention.ts";
import { openDatabase } from "../drizzle/client.ts";
import { databaseAnswer } from "../drizzle/database_answer.ts";
import { Background } from "../platform/background.ts";
import { systemClock } from "../platform/clock.ts";
import { readEnvironment } from "../platform/environment.ts";
import { Verbosity } from "../platform/log.ts";
import { metricsPlace } from "../platform/telemetry/endpoint.ts";
import { builtinPlugins } from "../plugins/builtin.ts";
import { createApp } from "./app.ts";
import type { Deps } from "./deps.ts";
import { proxyTrust } from "./http/address.ts";
import type { Service } from "./process/service.ts";
import { oidcSignOn } from "./sso/oidc.ts";
import { proxySignOn } from "./sso/proxy.ts";
import { Folder } from "./static/folder.ts";

/** Often, since strangers can add what it deletes. */
const cleanUpSeconds = 60;
/** What a server that is killed loses of its counts. */
const flushSeconds = 600;
/** What follows from incidents and was left undone: by a process that died, or by a plugin that failed. */
const flowSeconds = 15;

/** Everything that `createApp` needs, with what ends it. */
export interface ServerParts extends Deps {
  background: Background;
  counts: EventCounts;
  close(): Promise<void>;
}

/**
 * Builds the parts of a server. It connects to nothing: `watch` is not started.
 * @throws ConfigurationError with every fault
 */
export async function openServerParts(
  options: Omit<PartsOptions<never>, "builtin" | "clock" | "connect" | "counts"> &
    Partial<Pick<Deps, "clock">>,
): Promise<ServerParts> {
  const { clock = systemClock } = options;
  const counts = new EventCounts();
  const parts = await openParts(
    {
      ...{ ...options, clock, counts, builtin: builtinPlugins },
      connect: ({ url, poolSize, prepare, watch }) =>
        openDatabase(url, poolSize, watch?.("server", poolSize), { prepare }),
    },
    async (context, faults) => {
      const { config } = context;
      const keys = await faults.collect(() => new Keys(context));
      const sso = await faults.collect(() =>
        config.sso === "proxy" ? proxySignOn(config, clock, fetch) : oidcSignOn(context, fetch),
      );
      const proxies = await faults.collect(() => proxyTrust(config.proxyHeaders, config.trustedProxies));
      await faults.collect(() => config.staticDir && Folder.open(config.staticDir));
      return { keys, sso, proxies };
    },
  );
  const { context, registry, plugins, more, close } = parts;
  const { config, log } = context;
  const watch = new ChallengeWatch(config.databaseDirectUrl ?? config.databaseUrl!, log);
  return { ...context, ...more, counts, registry, plugins, watch, background: new Background(), close };
}

/**
 * Builds the server from the environment, and starts what it does beside its requests. It opens no port; stopping the
 * application closes what was opened here. The database may still be down: /healthcheck tells.
 *
 * @throws ConfigurationError with every fault; Conflict when the schema is not one that this release can work on;
 * Unavailable when the database takes no writes, or when the only address that it has is a pooler's
 */
export async function openServer(): Promise<Service & ReturnType<typeof createApp>> {
  const parts = await openServerParts({ environment: readEnvironment(), telemetry: "svc-server" });
  const { db, clock, config, log, telemetry, keys, watch, counts, background } = parts;
  try {
    await assertReady(db, keys, log);
    await watch.start();
  } catch (error) {
    await parts.close();
    throw error;
  }
  const flush = () =>
    // In time, so that a database that is frozen does not hold up the end.
    databaseAnswer(counts.flush(db, clock.now())).catch((error: unknown) =>
      log.warn({ err: error }, "could not write counts into the audit log"),
    );
  const served = createApp(parts);
  const stopChores = startChores(parts, flush);
  served.app.onStop(async () => {
    stopChores();
    await Promise.all([background.stop(), watch.stop()]);
    await flush();
    await parts.close();
  });
  const place = metricsPlace(config, "metricsPort");
  return {
    ...served,
    verbosity: new Verbosity(log),
    warnWithoutTls() {
      if (
        !config.publicUrl.startsWith("https:") ||
        config.proxyHeaders ||
        config.challengeLegacy !== "same_ip"
      )
        return;
      log.warn(
        "SVC_PUBLIC_URL is https and --proxy-headers is off: if a proxy ends TLS, every client has its address, and SVC_CHALLENGE_LEGACY=same_ip keeps nobody apart",
      );
    },
    flush: telemetry?.stop,
    metrics: place && telemetry?.scrape ? { ...place, scrape: telemetry.scrape } : undefined,
  };
}

/** Starts what is done again and again. @returns what ends that */
function startChores(parts: ServerParts, flush: () => Promise<unknown>): () => void {
  const { log, background } = parts;
  let cleaning = false;
  const cleanUp = () => {
    if (cleaning) return;
    cleaning = true;
    deleteExpired(parts)
      .catch((error: unknown) => log.warn({ err: error }, "could not delete what has expired"))
      .finally(() => {
        cleaning = false;
      });
  };
  // A database that is still down is asked again.
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
    background.add(runDueFlows(parts));
  };
  runFlows();
  const timers = [
    setInterval(cleanUp, cleanUpSeconds * 1000),
    setInterval(flush, flushSeconds * 1000),
    setInterval(runFlows, flowSeconds * 1000),
  ];
  return () => timers.forEach(clearInterval);
}
