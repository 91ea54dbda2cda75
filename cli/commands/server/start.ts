import { defineCommand } from "../../command.ts";
import {
  activated,
  application,
  commandLine,
  header,
  logLevel,
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
  summary: "Start the server",
  args: {
    app: {
      type: "positional",
      description: "Application to serve: <module>:<attribute>",
      parse: application,
    },
    host: { type: "string", metavar: "TEXT", description: `Address to listen on (default: ${defaultHost})` },
    port: {
      type: "custom",
      metavar: "INTEGER",
      description: `Port to listen on; 0 for any free port (default: ${defaultPort})`,
      parse: parsePort,
    },
    uds: {
      type: "string",
      metavar: "TEXT",
      description: "Unix socket to listen on, instead of a host and port",
      parse: socketPath,
    },
    udsMode: {
      type: "string",
      metavar: "MODE",
      description: "Octal mode of the socket (default: 660)",
      parse: mode,
    },
    fd: {
      type: "custom",
      metavar: "INTEGER",
      description: "File descriptor of an inherited socket, instead of a host and port",
      parse: whole(0, 1_000_000),
    },
    reload: {
      type: "boolean",
      description: "Restart when a source file (JavaScript, TypeScript, JSON, SQL) or .env changes",
    },
    reloadDir: {
      type: "string",
      multiple: true,
      metavar: "TEXT",
      description: "Directory to watch; can be repeated (default: the working directory)",
    },
    workers: {
      type: "custom",
      metavar: "INTEGER",
      description: "Number of worker processes, which a supervisor restarts",
      parse: whole(1, 256),
    },
    proxyHeaders: {
      type: "boolean",
      description: "Trust X-Forwarded-For and X-Forwarded-Proto from the allowed proxies",
    },
    forwardedAllowIps: {
      type: "string",
      metavar: "LIST",
      description:
        "Allowed proxies: addresses and networks, comma-separated (default: SVC_FORWARDED_ALLOW_IPS)",
    },
    rootPath: {
      type: "string",
      metavar: "PATH",
      description: "Path prefix of the application behind a proxy, stripped from requests",
      parse: path,
    },
    logLevel,
    accessLog: {
      type: "boolean",
      negatable: true,
      default: true,
      description: "Log each request, unless SVC_ACCESS_LOG is false",
    },
    sslKeyfile: { type: "string", metavar: "FILE", description: "Private key (PEM), to serve HTTPS" },
    sslCertfile: { type: "string", metavar: "FILE", description: "Certificate chain (PEM)" },
    sslCaCerts: {
      type: "string",
      metavar: "FILE",
      description: "Certificate authorities (PEM); clients must present a certificate of one of them",
    },
    mtlsPort: {
      type: "custom",
      metavar: "INTEGER",
      description: "Another port of --host, for clients that authenticate with certificates (HTTPS)",
      parse: parsePort,
    },
    mtlsCaCerts: {
      type: "string",
      metavar: "FILE",
      description:
        "Your own certificate authorities (PEM), whose certificates identify users (default: SVC_MTLS_CA_CERTS)",
    },
    mtlsKeyfile: {
      type: "string",
      metavar: "FILE",
      description: "Private key (PEM) of --mtls-port (default: --ssl-keyfile)",
    },
    mtlsCertfile: {
      type: "string",
      metavar: "FILE",
      description: "Certificate chain (PEM) of --mtls-port (default: --ssl-certfile)",
    },
    timeoutKeepAlive: {
      type: "custom",
      metavar: "SECONDS",
      default: 60,
      description: "Close idle connections after this time",
      parse: whole(1, 255),
    },
    timeoutStart: {
      type: "custom",
      metavar: "SECONDS",
      default: 60,
      description: "With --workers or --reload, stop a worker that is not ready by then",
      parse: whole(1, 3600),
    },
    timeoutDrain: {
      type: "custom",
      metavar: "SECONDS",
      default: 0,
      description:
        "After SIGTERM, keep serving for this time with 503 at /healthcheck, so that load balancers stop sending requests",
      parse: whole(0, 3600),
    },
    timeoutGracefulShutdown: {
      type: "custom",
      metavar: "SECONDS",
      default: 5,
      description: "Time to finish requests after SIGTERM",
      parse: whole(0, 3600),
    },
    envFile: {
      type: "string",
      metavar: "FILE",
      description: "File of variables, which overrides .env; the environment overrides both",
    },
    header: {
      type: "string",
      multiple: true,
      metavar: "NAME:VALUE",
      description: "Header for every response; can be repeated",
      parse: header,
    },
    // Set by the supervisor for its processes.
    supervised: { type: "boolean", hidden: true },
    takesOver: { type: "boolean", hidden: true },
    whenReady: { type: "boolean", hidden: true },
    watchdog: { type: "boolean", hidden: true },
  },
  examples: [
    "svc server start server/main:app --host 0.0.0.0 --port 8000 --proxy-headers",
    "svc server start server/main:app --workers 6",
    "svc server start server/main:app --uds /run/svc.sock",
    "svc server start server/main:app --ssl-keyfile key.pem --ssl-certfile chain.pem --mtls-port 8443",
  ],
  notes: [
    "APP is an object with a method fetch(request), such as an Elysia application. The module is a file, relative to the working directory or absolute, or an npm package.",
    "SIGTERM or Ctrl-C stops accepting connections, finishes the current requests and exits with 0; a second signal, at least half a second later, exits at once. SIGHUP reloads the certificate; with --workers, it replaces the workers one by one, without refusing connections.",
    "A process whose event loop is blocked for 20 s exits with 1, and --workers replaces it. With --reload, it continues.",
    "SIGUSR2 switches all workers to the log level debug, and back.",
    "Without an address or --fd, uses the socket of systemd's socket activation (LISTEN_FDS).",
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
      { certificateWarnings },
      { createLifecycleLog },
    ] = await Promise.all([
      import("../../../server/process/start.ts"),
      import("../../../server/process/options.ts"),
      import("../../../server/process/supervise.ts"),
      import("../../../platform/environment.ts"),
      import("../../../server/installed_plugins.ts"),
      import("../../../server/process/tls.ts"),
      import("../../../platform/log.ts"),
    ]);
    if (app.startsWith("server/main:") && !supervised) {
      const own = given.envFile === undefined ? {} : readEnvironment(io.env, given.envFile);
      const environment = { ...readEnvironment(io.env), ...own };
      const { names } = await knownVariables(environment);
      for (const sentence of unknownVariables(environment, names)) io.stderr.write(`svc: ${sentence}\n`);
    }
    const hasPort = given.fd === undefined && given.uds === undefined;
    // Chosen before the application is loaded, because its public address contains the port.
    const port = (given.port ?? defaultPort) || (hasPort ? await chooseFreePort(host) : 0);
    const hidden = { supervised, takesOver, whenReady, watchdog };
    const options = { ...given, app, host, port, proxyHeaders, header, ...hidden };
    if (!supervised) {
      // Checked before the workers start, so that warnings and errors are logged once.
      for (const warning of certificateWarnings(options, io.clock.now())) createLifecycleLog().warn(warning);
    }
    // Workers, and a server that can reload its certificate, share the port: another program on it would get half of the requests.
    if (hasPort && !supervised && (!alone || options.sslCertfile !== undefined))
      await assertFree(host, port, "--port");
    if (given.mtlsPort !== undefined && !supervised) await assertFree(host, given.mtlsPort, "--mtls-port");
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
        ...commandLine(hasPort ? args : { ...args, host: given.host, port: undefined }),
      ],
      count: workers ?? 1,
      fd,
      graceSeconds: options.timeoutGracefulShutdown,
      // A developer wants to see a change, even if something else is broken.
      whenReady: !reload,
      startSeconds: options.timeoutStart,
      drainSeconds: options.timeoutDrain,
      metrics: metricsPlaceOf(options, io.env),
      address: placeOf(options),
      reload: reload ? (reloadDir.length > 0 ? reloadDir : [process.cwd()]) : [],
    });
  },
});
