import { defineCommand } from "../../command.ts";
import {
  activated,
  application,
  commandLine,
  header,
  mode,
  path,
  refuseContradictions,
  refuseMissing,
  socketPath,
  whole,
} from "../../start_options.ts";
import { unknownVariables } from "../../unknown_variables.ts";
import { assertFree, chooseFreePort, parsePort } from "../../up/ports.ts";

const defaultHost = "127.0.0.1";
const defaultPort = 8000;

export default defineCommand({
  args: {
    app: {
      type: "positional",
      description: "The application to serve: <module>:<attribute>",
      parse: application,
    },
    host: { type: "string", metavar: "TEXT", description: `Address to listen on (default ${defaultHost})` },
    port: {
      type: "custom",
      metavar: "INTEGER",
      description: `Port to listen on; 0: any free one (default ${defaultPort})`,
      parse: parsePort,
    },
    uds: {
      type: "string",
      metavar: "TEXT",
      description: "Unix socket to listen on, instead of host and port",
      parse: socketPath,
    },
    udsMode: {
      type: "string",
      metavar: "MODE",
      description: "Mode of that socket, in octal (default 660)",
      parse: mode,
    },
    fd: {
      type: "custom",
      metavar: "INTEGER",
      description: "File descriptor that somebody else listens on for us, instead of host and port",
      parse: whole(0, 1_000_000),
    },
    reload: { type: "boolean", description: "Start again when a file changes" },
    reloadDir: {
      type: "string",
      multiple: true,
      metavar: "TEXT",
      description: "Folder to watch; may be given again (default: the working directory)",
    },
    workers: {
      type: "custom",
      metavar: "INTEGER",
      description: "Processes that serve side by side, kept alive by a supervisor",
      parse: whole(1, 256),
    },
    proxyHeaders: {
      type: "boolean",
      description: "Believe X-Forwarded-For and X-Forwarded-Proto of the proxies that are allowed",
    },
    forwardedAllowIps: {
      type: "string",
      metavar: "LIST",
      description:
        "Those proxies: addresses and networks, comma-separated (otherwise SVC_FORWARDED_ALLOW_IPS)",
    },
    rootPath: {
      type: "string",
      metavar: "PATH",
      description: "Path that a proxy serves the application under; taken away from requests that have it",
      parse: path,
    },
    logLevel: {
      type: "enum",
      metavar: "LEVEL",
      choices: ["trace", "debug", "info", "warn", "error", "fatal"],
      description: "The least severe log line that is written (otherwise SVC_LOG_LEVEL)",
    },
    accessLog: {
      type: "boolean",
      negatable: true,
      default: true,
      description: "Log each request (otherwise SVC_ACCESS_LOG)",
    },
    sslKeyfile: { type: "string", metavar: "FILE", description: "Private key (PEM): serve HTTPS" },
    sslCertfile: { type: "string", metavar: "FILE", description: "Certificate with its chain (PEM)" },
    sslCaCerts: {
      type: "string",
      metavar: "FILE",
      description: "Authorities (PEM): only clients with a certificate of one of them are let in",
    },
    limitConcurrency: {
      type: "custom",
      metavar: "INTEGER",
      description: "Requests at once in one process; those beyond are answered 503",
      parse: whole(1, 1_000_000),
    },
    limitMaxRequests: {
      type: "custom",
      metavar: "INTEGER",
      description: "Requests after which a process ends; a supervisor replaces it",
      parse: whole(1, 1_000_000_000),
    },
    backlog: {
      type: "custom",
      metavar: "INTEGER",
      description: "Connections that may wait to be accepted (otherwise 512)",
      parse: whole(1, 65_535),
    },
    timeoutKeepAlive: {
      type: "custom",
      metavar: "SECONDS",
      default: 60,
      description: "Close a connection on which nothing has happened for so long",
      parse: whole(1, 255),
    },
    timeoutStart: {
      type: "custom",
      metavar: "SECONDS",
      default: 60,
      description: "With --workers or --reload: a worker that does not answer by then is ended",
      parse: whole(1, 3600),
    },
    timeoutDrain: {
      type: "custom",
      metavar: "SECONDS",
      default: 0,
      description: "Go on serving so long after SIGTERM, with 503 at /healthcheck: balancers look elsewhere",
      parse: whole(0, 3600),
    },
    timeoutGracefulShutdown: {
      type: "custom",
      metavar: "SECONDS",
      default: 5,
      description: "What is under way may take so long after SIGTERM",
      parse: whole(0, 3600),
    },
    metricsHost: {
      type: "string",
      metavar: "TEXT",
      description:
        "Address to serve /metrics on, with METRIC_PROVIDERS=prometheus (otherwise SVC_METRICS_HOST)",
    },
    metricsPort: {
      type: "custom",
      metavar: "INTEGER",
      description: "Port for that; 0: any free one (otherwise SVC_METRICS_PORT)",
      parse: parsePort,
    },
    envFile: {
      type: "string",
      metavar: "FILE",
      description: "File of variables; the environment goes before it, and it goes before .env",
    },
    header: {
      type: "string",
      multiple: true,
      metavar: "NAME:VALUE",
      description: "Header to set on every answer; may be given again",
      parse: header,
    },
    // What a supervisor says to the processes that it starts.
    supervised: { type: "boolean", hidden: true },
    takesOver: { type: "boolean", hidden: true },
    whenReady: { type: "boolean", hidden: true },
    watchdog: { type: "boolean", hidden: true },
  },
  examples: [
    "svc server start server/main:app --host 0.0.0.0 --port 8000 --proxy-headers",
    "svc server start server/main:app --workers 6",
    "svc server start server/main:app --uds /run/svc.sock",
  ],
  notes: [
    "APP is an object with fetch(request), such as an Elysia. Its module is a file, from the working directory or absolute, or an npm package.",
    "SIGTERM and Ctrl-C: no more connections are accepted, what is under way is finished, and the exit code is 0; the same signal again, half a second later, ends it at once. SIGHUP reads the certificate again; with --workers it replaces the workers one by one. No connection is refused.",
    "A process whose event loop has not turned for 20 s ends itself, with exit code 1; --workers replaces it. With --reload it goes on.",
    "SIGUSR2 has it log at debug, and a second one as configured, with all workers.",
    "The socket of systemd's socket activation (LISTEN_FDS) is served when neither --fd nor another address is given.",
  ],
  async run({ app, reload = false, workers, supervised = false, ...rest }, io) {
    const given = { ...rest, fd: rest.fd ?? activated(rest, io.env) };
    refuseContradictions({ ...given, reload, workers });
    refuseMissing(given);
    const { host = defaultHost, proxyHeaders = false, header = [], reloadDir = [] } = given;
    const { takesOver = false, whenReady = false } = given;
    const alone = !reload && workers === undefined;
    const watchdog = supervised ? (given.watchdog ?? false) : alone;
    const [
      { metricsPlaceOf, startServer },
      { placeOf },
      { supervise },
      { readEnvironment },
      { knownVariables },
      { certificateWarning },
      { systemClock },
      { createLifecycleLog },
    ] = await Promise.all([
      import("../../../server/process/start.ts"),
      import("../../../server/process/options.ts"),
      import("../../../server/process/supervise.ts"),
      import("../../../platform/environment.ts"),
      import("../../../server/known_variables.ts"),
      import("../../../server/process/tls.ts"),
      import("../../../platform/clock.ts"),
      import("../../../platform/log.ts"),
    ]);
    if (app.startsWith("server/main:") && !supervised) {
      const own = given.envFile === undefined ? {} : readEnvironment(io.env, given.envFile);
      const environment = { ...readEnvironment(io.env), ...own };
      const { names } = await knownVariables(environment);
      for (const sentence of unknownVariables(environment, names)) io.stderr.write(`svc: ${sentence}\n`);
    }
    const hasPort = given.fd === undefined && given.uds === undefined;
    // Chosen before the application is loaded: its public address holds the port.
    const port = (given.port ?? defaultPort) || (hasPort ? await chooseFreePort(host) : 0);
    const hidden = { supervised, takesOver, whenReady, watchdog };
    const options = { ...given, app, host, port, proxyHeaders, header, ...hidden };
    if (!supervised) {
      // Before any worker, so that it is said once; so is what is wrong with the files.
      const warning = certificateWarning(options, systemClock.now());
      if (warning !== undefined) createLifecycleLog().warn(warning);
    }
    // Workers, and a server that can replace its certificate, share the port: who else has it would get half of the requests.
    if (hasPort && !supervised && (!alone || options.sslCertfile !== undefined))
      await assertFree(host, port, "the server", "--port");
    if (supervised || alone) {
      await startServer(options, io.env);
      return;
    }
    const { reloadDir: _watched, fd, ...passedOn } = options;
    const args = { ...passedOn, supervised: true, watchdog: !reload, ...(fd === undefined ? {} : { fd: 3 }) };
    await supervise({
      args: [
        "server",
        "start",
        ...commandLine(hasPort ? args : { ...args, host: undefined, port: undefined }),
      ],
      ...{ count: workers ?? 1, fd, graceSeconds: options.timeoutGracefulShutdown },
      // Who changes a file wants to see what it does, whatever else is broken.
      whenReady: !reload,
      startSeconds: options.timeoutStart,
      drainSeconds: options.timeoutDrain,
      metrics: metricsPlaceOf(options, io.env),
      address: placeOf(options),
      reload: reload ? (reloadDir.length > 0 ? reloadDir : [process.cwd()]) : [],
    });
  },
});
