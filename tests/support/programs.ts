import { existsSync, globSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Programs that some tests need and npm does not install. */
interface Need {
  /** One sentence that names what needs them, and that they are missing. */
  why: string;
  /** Debian's, separated by spaces. */
  packages: string;
  /** Units that the packages would start, on well-known ports. They are masked while the packages are installed. */
  units?: readonly string[];
  /** A shell command to run before. */
  before?: string;
  /** The instructions for other systems. */
  elsewhere?: string;
  found: () => boolean;
}

/** A shell command, for root on Debian. Installing all packages at once takes two thirds of the time. */
function commandFor(needs: readonly Need[]): string {
  // Waits for another installation: of a concurrent run, or of a machine that has just started.
  const wait = "-o DPkg::Lock::Timeout=300";
  const packages = needs.map((need) => need.packages).join(" ");
  const apt = `apt-get update ${wait} && apt-get install -y ${wait} -o Dpkg::Options::=--force-confold --no-install-recommends ${packages}`;
  const units = needs.flatMap((need) => need.units ?? []);
  return [...needs.flatMap(({ before }) => before ?? []), units.length > 0 ? masking(units, apt) : apt].join(
    " && ",
  );
}

function masking(units: readonly string[], command: string): string {
  const masks = units.map((unit) => `/etc/systemd/system/${unit}.service`);
  const disable = `systemctl disable ${units.map((unit) => `${unit}.service`).join(" ")}`;
  return [
    "mkdir -p /etc/systemd/system",
    `for unit in ${masks.join(" ")}; do ln -sf /dev/null $unit; done`,
    `{ ${command}; code=$?; rm -f ${masks.join(" ")}; ! command -v systemctl || ${disable}; [ $code = 0 ]; }`,
  ].join(" && ");
}

/**
 * Ensures that the programs are installed. For root on Debian (a container, a CI machine), it installs what is missing;
 * otherwise, the error has the command.
 *
 * @throws Error, with the command
 */
export function ensure(...needs: readonly Need[]): void {
  const missing = needs.filter(({ found }) => !found());
  if (missing.length === 0) return;
  const [why, install] = [missing.map((need) => need.why).join(". "), commandFor(missing)];
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) {
    const others = missing.flatMap(({ elsewhere }) => elsewhere ?? []);
    const other = others.length > 0 ? ` Elsewhere: ${others.join("; ")}` : "";
    throw new Error(`${why}. On Debian: sudo sh -c '${install.replaceAll("'", `'\\''`)}'.${other}`);
  }
  console.log(`${why}: ${install}`);
  const { exitCode, stdout, stderr } = Bun.spawnSync(["sh", "-c", install], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    stdin: "ignore",
  });
  if (exitCode === 0 && missing.every(({ found }) => found())) return;
  throw new Error(`${why}, and this failed: ${install}\n${stdout}${stderr}`.trim());
}

/** The path of a browser. */
export function findChromium(): string | undefined {
  if (process.env.SVC_TEST_CHROMIUM) return process.env.SVC_TEST_CHROMIUM;
  const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
  return names.map((name) => Bun.which(name)).find((path) => path !== null) ?? undefined;
}

const postgresRoot = "/usr/lib/postgresql";
/** The embedded version: one test needs an older server. */
const newestPostgres = 18;

/** The version of Debian's PostgreSQL, and the folder of its server and client tools, if it is older than the embedded one. */
export function findDebianPostgres(): { directory: string; major: number } | undefined {
  const majors = existsSync(postgresRoot) ? readdirSync(postgresRoot).map(Number) : [];
  const complete = majors
    .map((major) => ({ major, directory: join(postgresRoot, String(major), "bin") }))
    .filter(({ major, directory }) => {
      const programs = ["initdb", "postgres", "pg_ctl", "pg_dump", "pg_restore"];
      return major < newestPostgres && programs.every((program) => existsSync(join(directory, program)));
    });
  return complete.sort((a, b) => b.major - a.major)[0];
}

/** A library that moves the clock of a program that loads it (LD_PRELOAD). */
export const findFaketime = (): string | undefined => globSync("/usr/lib/*/faketime/libfaketime.so.1")[0];

// These are not on every user's PATH.
export const pgbouncer = "/usr/sbin/pgbouncer";
export const sshServer = "/usr/sbin/sshd";
/** Debian's: another version on the PATH may lack what the documentation shows. */
export const awsCli = "/usr/bin/aws";
export const proxyPrograms = {
  haproxy: "/usr/sbin/haproxy",
  caddy: "/usr/bin/caddy",
  nginx: "/usr/sbin/nginx",
} as const;

/** Programs that are found by name on the PATH. */
function onPath(why: string, packages: string, ...names: string[]): Need {
  const found = () => names.every((name) => Bun.which(name) !== null);
  return { why, packages, found };
}

export const programs = {
  chromium: {
    why: "The browser tests need Chromium, and there is none on the PATH",
    packages: "chromium",
    elsewhere: "name one in SVC_TEST_CHROMIUM",
    found: () => findChromium() !== undefined,
  },
  debianPostgres: {
    why: `The tests of dump and restore need a PostgreSQL with its client tools in ${postgresRoot}`,
    // Installing the packages must not create a cluster that starts with the machine.
    before: [
      "mkdir -p /etc/postgresql-common",
      "{ [ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf; }",
    ].join(" && "),
    packages: "postgresql",
    found: () => findDebianPostgres() !== undefined,
  },
  pgbouncer: onPath("The test of poolers needs PgBouncer", "pgbouncer", pgbouncer),
  faketime: {
    why: "The tests of targets whose clock is wrong need libfaketime",
    packages: "libfaketime",
    found: () => findFaketime() !== undefined,
  },
  wrk: onPath("The benches need wrk", "wrk", "wrk"),
  sockets: onPath("The tests of sockets need ss", "iproute2", "ss"),
  ssh: {
    ...onPath(
      "The tests of SSH certificates need OpenSSH's server and client",
      "openssh-server openssh-client",
      sshServer,
      "ssh",
      "ssh-agent",
    ),
    units: ["ssh"],
  },
  proxies: {
    ...onPath(
      "The tests of forwarded client certificates need HAProxy, Caddy and nginx",
      "haproxy caddy nginx-light",
      ...Object.values(proxyPrograms),
    ),
    units: Object.keys(proxyPrograms),
  },
  prometheus: {
    ...onPath("The tests of the alert rules need promtool", "prometheus", "promtool"),
    units: ["prometheus"],
  },
  kubectl: onPath("The tests of Kubernetes tokens need kubectl", "kubernetes-client", "kubectl"),
  systemd: onPath(
    "The test of the documented configurations needs systemd-analyze",
    "systemd",
    "systemd-analyze",
  ),
  aws: onPath("The tests of AWS access need Debian's AWS CLI", "awscli", awsCli),
  promtool: {
    ...onPath("The tests of the alert rules need promtool", "prometheus", "promtool"),
    units: ["prometheus", "prometheus-node-exporter"],
  },
  curl: onPath("The tests of certificates need curl", "curl", "curl"),
  openssl: onPath("The tests of TLS need openssl", "openssl", "openssl"),
  shells: onPath("The tests of completion need three shells", "bash zsh fish", "bash", "zsh", "fish"),
  qemu: {
    why: "The test of the executable for another processor needs an emulator",
    packages: "qemu-user libc6-arm64-cross",
    found: () => Bun.which("qemu-aarch64") !== null && existsSync("/usr/aarch64-linux-gnu"),
  },
  mandoc: onPath("The test of the manual needs mandoc", "mandoc", "mandoc"),
} satisfies Record<string, Need>;

export const missingDebianPostgres = `${programs.debianPostgres.why}. On Debian, as root: ${commandFor([programs.debianPostgres])}`;
