import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { variables } from "../../core/config.ts";
import { init } from "../../core/populate/init.ts";
import { openDatabase } from "../../drizzle/client.ts";
import { singleAddress } from "../../drizzle/connection/database_address.ts";
import { EmbeddedPostgresError, startEmbeddedPostgres } from "../../drizzle/embedded.ts";
import { hostInUrl } from "../../platform/address.ts";
import { systemClock } from "../../platform/clock.ts";
import { Unavailable } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { createTrialAccess, moveTrialAccess } from "../../trial/access.ts";
import { loadExample } from "../../trial/example/load.ts";
import type { LocalCertificates } from "../../trial/local_certificates.ts";
import { type Child, type ChildOptions, startChild } from "./child.ts";
import { untilReady, untilWorks } from "./ready.ts";
import type { Progress } from "./report.ts";
import type { Settings } from "./settings.ts";

/** The server answers held polls and closes its connections before it exits; the provider has nothing to finish. */
const serverGraceSeconds = 7;
const idpGraceSeconds = 2;
/** Shorter than the time of the worker, for a quick Ctrl-C: the next start takes over unfinished runs. */
const workerGraceSeconds = 3;

interface Run {
  /** Stops each process that was started. */
  parts: AsyncDisposableStack;
  progress: Progress;
  signal: AbortSignal;
  /** Called if a process exits by itself. */
  fail: (reason: Error) => void;
  /** Publishes the configuration for other commands in the clone. */
  publish: (environment: Environment) => void;
}

/** Starts the processes, independent ones concurrently. Settles when all are ready. */
export async function start(settings: Settings, run: Run): Promise<void> {
  const { config, startsIdp } = settings;
  const clientSecret = config.oidcClientSecret ?? newSecret();
  const issuer = `http://127.0.0.1:${settings.idpPort}`;
  // Started first and awaited last, because it does not depend on the others.
  const idp = startsIdp ? startIdp(settings, run, issuer, clientSecret) : undefined;
  idp?.catch(() => {});
  const withExample = wantsExample(settings);
  const pooledUrl = settings.startsDatabase ? await startDatabase(settings, run) : config.databaseUrl!;
  const databaseUrl = await singleAddress(config.databaseDirectUrl ?? pooledUrl);
  run.signal.throwIfAborted();
  const { applied, head } = await init({ url: databaseUrl });
  run.progress.done(applied.length > 0 ? `Schema upgraded to ${head}` : `Schema is at ${head}`);
  run.signal.throwIfAborted();
  if (withExample) run.progress.done(await firstExample(settings, databaseUrl));
  if (settings.startsDatabase) await prepareAccess(settings, databaseUrl, withExample);
  run.signal.throwIfAborted();
  const environment = partsEnvironment(settings, { pooledUrl, issuer, clientSecret });
  run.publish(onlySettings(environment));
  const worker = startWorker(settings, run, environment, databaseUrl);
  worker.catch(() => {});
  await startServer(settings, run, environment);
  await Promise.all([idp, worker]);
}

/** The environment shared by all processes that use the database. */
function partsEnvironment(
  { environment, config, publicUrl, mtls, dataDir, startsIdp }: Settings,
  { pooledUrl, issuer, clientSecret }: { pooledUrl: string; issuer: string; clientSecret: string },
): Environment {
  return {
    ...environment,
    SVC_DATABASE_URL: pooledUrl,
    SVC_PUBLIC_URL: publicUrl,
    ...(mtls ? { SVC_MTLS_URL: mtls.url } : {}),
    SVC_KEY_SECRET: config.keySecret ?? keptKeySecret(dataDir),
    ...(startsIdp
      ? {
          SVC_DOMAIN: config.domain ?? "example.com",
          SVC_OIDC_ISSUER: issuer,
          SVC_OIDC_CLIENT_ID: "svc",
          SVC_OIDC_CLIENT_SECRET: clientSecret,
        }
      : {}),
  };
}

/** Only the variables of svc: the caller's environment may contain secrets of other programs. */
function onlySettings(environment: Environment): Environment {
  const names = new Set(Object.values(variables).flatMap(({ name }) => [name, `${name}_FILE`]));
  const ours = (name: string) => names.has(name) || name.startsWith("SVC_PLUGIN_");
  return Object.fromEntries(Object.entries(environment).filter(([name]) => ours(name)));
}

async function startDatabase(
  { dataDir, databasePort, reservedPorts }: Settings,
  { parts, progress, fail }: Run,
): Promise<string> {
  const directory = join(dataDir, "postgres");
  try {
    const database = await startEmbeddedPostgres({
      directory,
      port: databasePort,
      reservedPorts,
      log: (line) => progress.note(line),
    });
    let stopping = false;
    parts.defer(() => {
      stopping = true;
      return database.stop();
    });
    database.exited.then(() => {
      if (!stopping) fail(new Unavailable(`PostgreSQL exited (log: ${database.logFile})`));
    });
    progress.done(`PostgreSQL runs on 127.0.0.1:${database.port}, data in ${directory}`);
    return database.url;
  } catch (cause) {
    if (cause instanceof EmbeddedPostgresError) throw new Unavailable(cause.message, { cause });
    throw cause;
  }
}

async function startIdp(settings: Settings, run: Run, issuer: string, clientSecret: string): Promise<void> {
  const { PATH, HOME, SVC_TRIAL_PASSWORD } = settings.environment;
  launch(settings, run, idpGraceSeconds, {
    name: "idp",
    args: ["idp", "start", "--port", String(settings.idpPort), "--public-url", settings.publicUrl],
    environment: { PATH, HOME, SVC_TRIAL_PASSWORD, SVC_OIDC_CLIENT_SECRET: clientSecret },
  });
  await untilReady("The trial sign-in provider", `${issuer}/.well-known/openid-configuration`, run.signal);
  run.progress.done(`Trial sign-in provider runs on ${issuer}`);
}

async function startServer(settings: Settings, run: Run, environment: Environment): Promise<void> {
  const { host, port, mtls } = settings;
  const files = mtls && (await prepareFiles(settings.dataDir, mtls.names));
  const args = ["server", "start", "server/main:app", "--host", host, "--port", String(port)];
  if (mtls && files) {
    args.push("--mtls-port", String(mtls.port));
    args.push("--mtls-certfile", files.certificate, "--mtls-keyfile", files.key);
  }
  launch(settings, run, serverGraceSeconds, { name: "server", args, environment });
  // A server on all addresses is reached on loopback.
  const reachable = hostInUrl({ "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host);
  await untilReady("The server", `http://${reachable}:${port}/healthcheck`, run.signal);
  run.progress.done(`Server runs on http://${hostInUrl(host)}:${port}`);
  if (!mtls || !files) return;
  // Not SVC_MTLS_URL, which may be known to others only.
  const tls = { ca: readFileSync(files.authority, "utf8"), serverName: "localhost" };
  await untilReady(
    "The port for mutual TLS",
    `https://${reachable}:${mtls.port}/healthcheck`,
    run.signal,
    tls,
  );
  run.progress.done(`Clients with certificates: ${mtls.url}`);
}

/** Loaded only when needed. */
async function prepareFiles(dataDir: string, names: string[]): Promise<LocalCertificates> {
  const { prepareLocalCertificates } = await import("../../trial/local_certificates.ts");
  return prepareLocalCertificates(join(dataDir, "mtls"), names, systemClock.now());
}

async function startWorker(
  settings: Settings,
  run: Run,
  environment: Environment,
  databaseUrl: string,
): Promise<void> {
  const { pid } = launch(settings, run, workerGraceSeconds, {
    name: "worker",
    args: ["scheduler", "start"],
    environment,
  });
  await untilWorks(databaseUrl, pid, run.signal);
  run.progress.done("Worker runs the schedule");
}

function launch(
  { dataDir, verbose }: Settings,
  { parts, progress, fail }: Run,
  graceSeconds: number,
  options: Pick<ChildOptions, "name" | "args" | "environment">,
): Child {
  const child = startChild({ ...options, dataDir, verbose, show: (line) => progress.say(line) });
  parts.defer(() => child.stop(graceSeconds));
  child.failed.catch(fail);
  return child;
}

/** Whether to load the example: only into a new database of our own. */
function wantsExample({ example, startsDatabase, dataDir }: Settings): boolean {
  return example && startsDatabase && !existsSync(join(dataDir, "postgres/data"));
}

/** Loads the example data into a database at head. @returns a line for the terminal */
async function firstExample({ dataDir }: Settings, url: string): Promise<string> {
  const { db, close } = openDatabase(url, 1);
  try {
    const { incidents } = await loadExample(db, systemClock.now());
    return `Example data loaded: ${incidents} incidents (to start without it: stop svc, delete ${dataDir}, use --no-example)`;
  } finally {
    await close();
  }
}

/** The second database, to try access with: created with the example. Later starts update its address. */
async function prepareAccess({ config, dataDir }: Settings, url: string, isNew: boolean): Promise<void> {
  const { db, close } = openDatabase(url, 1);
  try {
    if (isNew) await createTrialAccess(db, url, config.keySecret ?? keptKeySecret(dataDir));
    else await moveTrialAccess(db, url);
  } finally {
    await close();
  }
}

/**
 * The secret that encrypts the signing keys in the database, generated at the first start and stored next to it. With
 * another one, the keys could not be read, and all tokens would be invalid.
 */
function keptKeySecret(dataDir: string): string {
  const file = join(dataDir, "key_secret");
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const secret = newSecret();
  writeFileSync(file, `${secret}\n`, { mode: 0o600, flag: "wx" });
  return secret;
}

function newSecret(): string {
  return randomBytes(36).toString("base64url");
}
