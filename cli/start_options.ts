import { existsSync, fstatSync } from "node:fs";
import { ConfigurationError } from "../platform/errors.ts";
import { logLevels } from "../platform/variable.ts";
import { UsageError } from "./errors.ts";
import { kebab } from "./help.ts";

/** The option of every command that logs. */
export const logLevel = {
  type: "enum",
  metavar: "LEVEL",
  choices: logLevels,
  description: "Minimum log level, by default SVC_LOG_LEVEL",
} as const;

const longestSocketPath = process.platform === "linux" ? 107 : 103;

interface Given {
  host?: string;
  port?: number;
  uds?: string;
  udsMode?: number;
  fd?: number;
  reload: boolean;
  reloadDir?: string[];
  workers?: number;
  sslKeyfile?: string;
  sslCertfile?: string;
  sslCaCerts?: string;
  mtlsPort?: number;
  mtlsKeyfile?: string;
  mtlsCertfile?: string;
}

/** @throws UsageError for options that exclude or require each other */
export function refuseContradictions(given: Given): void {
  const { host, port, uds, udsMode, fd, reload, reloadDir, workers } = given;
  // With --mtls-port, there is another use for it.
  const only = given.mtlsPort === undefined ? host : undefined;
  const places = Object.entries({ "--uds": uds, "--fd": fd, "--host": only, "--port": port })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name);
  if (places.length > 1 && (uds !== undefined || fd !== undefined)) {
    throw new UsageError(`${places.join(" and ")} exclude each other`);
  }
  if (udsMode !== undefined && uds === undefined) throw new UsageError("--uds-mode requires --uds");
  if (reload && workers !== undefined) throw new UsageError("--reload and --workers exclude each other");
  if (uds !== undefined && (reload || (workers ?? 1) > 1)) {
    throw new UsageError(
      `--uds and ${reload ? "--reload" : "--workers"} exclude each other: processes cannot share a Unix socket`,
    );
  }
  if (reloadDir !== undefined && !reload) throw new UsageError("--reload-dir requires --reload");
  if ((given.sslKeyfile === undefined) !== (given.sslCertfile === undefined)) {
    throw new UsageError("--ssl-keyfile and --ssl-certfile require each other");
  }
  if (given.sslCaCerts !== undefined && given.sslCertfile === undefined) {
    throw new UsageError("--ssl-ca-certs requires --ssl-keyfile and --ssl-certfile");
  }
  const { mtlsPort, mtlsKeyfile, mtlsCertfile } = given;
  if ((mtlsKeyfile === undefined) !== (mtlsCertfile === undefined)) {
    throw new UsageError("--mtls-keyfile and --mtls-certfile require each other");
  }
  if (mtlsCertfile !== undefined && mtlsPort === undefined) {
    throw new UsageError("--mtls-certfile requires --mtls-port");
  }
  if (mtlsPort === 0) throw new UsageError("--mtls-port 0: clients would not know the address");
  if (mtlsPort !== undefined && (mtlsCertfile ?? given.sslCertfile) === undefined) {
    throw new UsageError(
      "--mtls-port requires --ssl-keyfile and --ssl-certfile, or --mtls-keyfile and --mtls-certfile",
    );
  }
  if (mtlsPort !== undefined && mtlsPort === port)
    throw new UsageError("--mtls-port and --port are the same");
}

/** The descriptor of socket activation (sd_listen_fds(3)), if it is for this process and no address is given. */
export function activated(
  { host, port, uds, mtlsPort }: Pick<Given, "host" | "port" | "uds" | "mtlsPort">,
  { LISTEN_FDS, LISTEN_PID }: Readonly<Record<string, string | undefined>>,
): number | undefined {
  const only = mtlsPort === undefined ? host : undefined;
  if (LISTEN_PID !== String(process.pid) || (only ?? port ?? uds) !== undefined) return undefined;
  if (LISTEN_FDS === undefined || LISTEN_FDS === "0") return undefined;
  if (LISTEN_FDS !== "1")
    throw new UsageError(`LISTEN_FDS is ${LISTEN_FDS}: exactly one socket is supported`);
  return 3;
}

/** @throws ConfigurationError for a missing directory, or a descriptor that is not a socket */
export function refuseMissing({ fd, reloadDir = [] }: Pick<Given, "fd" | "reloadDir">): void {
  const missing = reloadDir.find((path) => !existsSync(path));
  if (missing !== undefined) throw new ConfigurationError([`--reload-dir: no such directory: ${missing}`]);
  if (fd !== undefined && !isSocket(fd)) {
    throw new ConfigurationError([`--fd ${fd} is not a socket`]);
  }
}

function isSocket(fd: number): boolean {
  try {
    return fstatSync(fd).isSocket();
  } catch {
    return false;
  }
}

/** The options as arguments of a command line. */
export function commandLine({ app, ...options }: Readonly<Record<string, unknown>>): string[] {
  const words = Object.entries(options).flatMap(([name, value]): string[] => {
    const option = `--${kebab(name)}`;
    if (value === undefined || value === false) return name === "accessLog" ? ["--no-access-log"] : [];
    if (value === true) return name === "accessLog" ? [] : [option];
    if (Array.isArray(value)) return value.map((one) => `${option}=${one}`);
    return [`${option}=${name === "udsMode" ? Number(value).toString(8) : value}`];
  });
  return [String(app), ...words];
}

/** gunshi's `parse` of APP. */
export function application(text: string): string {
  if (!/^[^:].*:[A-Za-z_$][\w$]*$/.test(text)) throw new UsageError(`"${text}" is not <module>:<attribute>`);
  return text;
}

/** gunshi's `parse` of a whole number within limits. */
export function whole(minimum: number, maximum: number) {
  return (text: string): number => {
    const number = Number(text);
    if (!/^\d{1,10}$/.test(text) || number < minimum || number > maximum) {
      throw new UsageError(`"${text}" is not a whole number from ${minimum} to ${maximum}`);
    }
    return number;
  };
}

/** Of the path of a Unix socket (`sun_path` of unix(7)). */
export function socketPath(text: string): string {
  if (Buffer.byteLength(text) > longestSocketPath) {
    throw new UsageError(`the path of a socket has at most ${longestSocketPath} bytes`);
  }
  return text;
}

/** Of an octal file mode. */
export function mode(text: string): number {
  if (!/^0?[0-7]{3}$/.test(text)) throw new UsageError(`"${text}" is not a mode such as 660`);
  return Number.parseInt(text, 8);
}

/** Of a URL path. Clients resolve `.` and `..`, so it has none. */
export function path(text: string): string {
  if (!/^(\/(?!\.\.?(\/|$))[\w.~-]+)+\/?$/.test(text))
    throw new UsageError(`"${text}" is not a path such as /svc`);
  return text;
}

/** Headers that frame or describe one response (RFC 9110, 6 and 7.6.1; RFC 9112, 6). */
const responseSpecific = new Set([
  "content-length",
  "transfer-encoding",
  "trailer",
  "connection",
  "keep-alive",
  "upgrade",
  "te",
  "date",
  "content-encoding",
  "content-range",
  "content-type",
  "proxy-connection",
  "location",
  "etag",
]);

/** Of `<name>:<value>`; the error does not repeat the value, which may be a secret. */
export function header(text: string): string {
  if (!/^[!#$%&'*+.^_`|~\w-]+:[\t -~]*$/.test(text)) throw new UsageError("expected <name>:<value>");
  const [name = ""] = text.split(":", 1);
  if (responseSpecific.has(name.toLowerCase()))
    throw new UsageError(`${name} differs between responses, and cannot be set for all`);
  return text;
}
