import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { freePort } from "../platform/free_port.ts";
import { asAuthority, asClient, CertificateFolder } from "../tests/support/http/client_certificates.ts";
import { email } from "./api/data.ts";
import { issueTokens } from "./api/tokens.ts";
import type { Result, Task } from "./mtls/client.ts";
import { residentMegabytes } from "./schedule/memory.ts";
import * as support from "./support.ts";
import { connections, processorMicroseconds, requestText } from "./wrk.ts";

const rounds = 5;
const roundSeconds = 4;
const handshakeSeconds = 5;
const idleConnections = 5000;
const aims = { bun: 0.75, haproxy: 1 };
/** HAProxy uses all processors, so svc has a worker for each when they are compared. */
const workers = availableParallelism();

interface Contender {
  name: string;
  port: number;
  /** The processes that answer, with their descendants: svc and, if it takes part, HAProxy. */
  pids: number[];
  /** Whether the client sends its certificate. */
  certified: boolean;
}

interface Trial extends Contender {
  path: "/healthcheck" | "/whoami";
  request: string;
  rates: number[];
  /** Processor time of a request, in microseconds. */
  costs: number[];
}

/**
 * Compares the mTLS port with Bun's own TLS, which hides the certificate from us, and with HAProxy, which forwards it in a
 * header.
 *
 * The aim against Bun's TLS is met by requests that do something, and missed by /healthcheck (0.55 to 0.65): there,
 * forwarding takes as long as the answer. Its four system calls alone allow 0.7. A Unix socket in between would be fast
 * enough (0.8), but Bun.serve cannot tell its connections apart, so that nobody would know whose certificate it is.
 * Bun.listen and Bun.connect instead of node:tls and node:net would save a quarter of the processor time of forwarding: too
 * little to give up their streams, which handle slow and half-closed connections. A thread of its own for TLS would answer
 * 15 % more requests on two cores: too little as well.
 */
export async function benchMtls(parts: AsyncDisposableStack): Promise<void> {
  support.ensureProgram("openssl");
  const haproxy = support.ensureProgram("haproxy");
  const directory = await support.temporaryDirectory(parts);
  const databaseUrl = await support.startDatabase(parts, directory);
  const files = parts.use(new CertificateFolder());
  const root = files.issue({ subject: "/CN=Root", extensions: asAuthority });
  const client = files.issue({ by: root, extensions: [...asClient, `subjectAltName=email:${email(1)}`] });
  const server = files.server();

  const serve = async (more: readonly string[], env: Record<string, string> = {}) => {
    const port = await freePort();
    const own = environmentOf(databaseUrl, port);
    const started = await support.startProgram(parts, directory, {
      command: [
        ...support.svcFromSource,
        "server",
        "start",
        "server/main:app",
        "--port",
        String(port),
        "--mtls-ca-certs",
        root.certificate,
        ...more,
      ],
      env: { ...own, ...env },
      ready: /listening on (https?:[^"\s]+)/,
    });
    return { ...started, port };
  };
  const all = ["--workers", String(workers)];
  const serveMtls = async (more: readonly string[] = []) => {
    const port = await freePort();
    const own = ["--mtls-keyfile", server.key, "--mtls-certfile", server.certificate];
    const { pid } = await serve(["--mtls-port", String(port), ...own, ...more]);
    return { pid, port };
  };
  const ours = await serveMtls();
  const bun = await serve(["--ssl-keyfile", server.key, "--ssl-certfile", server.certificate]);
  const oursOnAll = await serveMtls(all);
  const plain = await serve(["--proxy-headers", ...all], { SVC_MTLS_PROXY_HEADER: "Client-Cert" });
  const proxied = await startHaproxy(parts, { haproxy, directory: files.path, root, server, to: plain.port });

  // All servers have the same public address, so that one token is valid for all.
  const [token = ""] = await issueTokens(environmentOf(databaseUrl, 0), 1);
  const bearer = { authorization: `Bearer ${token}` };
  const contenders: Contender[] = [
    { name: "Bun's TLS", port: bun.port, pids: [bun.pid], certified: false },
    { name: "mTLS port", port: ours.port, pids: [ours.pid], certified: false },
    { name: "mTLS port, certificate", port: ours.port, pids: [ours.pid], certified: true },
    { name: ofAll("mTLS port"), port: oursOnAll.port, pids: [oursOnAll.pid], certified: true },
    { name: ofAll("HAProxy"), port: proxied.port, pids: [plain.pid, proxied.pid], certified: true },
  ];
  const trials = contenders.flatMap((contender) =>
    (["/healthcheck", "/whoami"] as const).map((path): Trial => {
      const headers = path === "/whoami" && !contender.certified ? bearer : {};
      const request = requestText("GET", `https://127.0.0.1:${contender.port}${path}`, headers);
      return { ...contender, path, request, rates: [], costs: [] };
    }),
  );
  console.log(
    `load     ${connections} connections; ${rounds} rounds of ${roundSeconds} s each, in turn, after one`,
  );
  console.log(
    `         that does not count. One process each, or ${workers} workers; every request is logged`,
  );
  console.log(`HAProxy  ${support.firstLine([haproxy, "-v"])}, one thread for each core\n`);
  const taskOf = ({ port, certified, request }: Pick<Trial, "port" | "certified" | "request">): Task => ({
    port,
    connections,
    request,
    seconds: roundSeconds,
    ...(certified ? { certificate: client.chain, key: client.key } : {}),
  });
  for (let round = 0; round <= rounds; round += 1) {
    for (const trial of trials) {
      const used = () => trial.pids.reduce((sum, pid) => sum + processorMicroseconds(pid), 0);
      const before = used();
      const { answers, refused, milliseconds } = await load(parts, taskOf(trial));
      if (refused > 0)
        throw new support.BenchError(`${trial.name} refused ${refused} requests to ${trial.path}`);
      if (round === 0) continue;
      trial.rates.push((answers / milliseconds) * 1000);
      trial.costs.push((used() - before) / answers);
    }
  }
  report(trials);

  console.log("\nhandshakes a second, one after another");
  for (const { name, port } of [contenders[0]!, contenders[2]!]) {
    const certificate = port === ours.port ? ["-cert", client.certificate, "-key", client.key] : [];
    const full = await handshakes(parts, port, ["-new", ...certificate]);
    const resumed = await handshakes(parts, port, ["-reuse", ...certificate]);
    console.log(
      `${name.padEnd(25)}${full.toFixed(0).padStart(6)} full${resumed.toFixed(0).padStart(8)} resumed`,
    );
  }

  console.log(`\nresident memory of the server, and with ${idleConnections} idle connections`);
  for (const { name, port, pids, certified } of [contenders[0]!, contenders[2]!]) {
    const [pid = 0] = pids;
    const before = residentMegabytes(pid);
    const task = { ...taskOf({ port, certified, request: "" }), connections: idleConnections, idle: true };
    const child = await startClient(parts, task);
    const reader = child.stdout.getReader();
    const { value } = await reader.read();
    if (!value) throw new support.BenchError(`${name} did not accept ${idleConnections} connections`);
    const after = residentMegabytes(pid);
    child.kill("SIGKILL");
    await child.exited;
    const each = ((after - before) * 1024) / idleConnections;
    console.log(
      `${name.padEnd(25)}${before.toFixed(0).padStart(6)} MB${after.toFixed(0).padStart(8)} MB   ${each.toFixed(1)} kB each`,
    );
  }
}

/** A contender with a worker for each processor, and a certificate. */
const ofAll = (name: string) => `${name}, ${workers} workers`;

const environmentOf = (databaseUrl: string, port: number) => ({
  SVC_DATABASE_URL: databaseUrl,
  SVC_KEY_SECRET: "a-secret-of-the-bench-of-thirty-two-characters",
  SVC_PUBLIC_URL: "http://svc.example.com",
  // Never contacted: no one signs in here.
  SVC_OIDC_ISSUER: "http://127.0.0.1:9",
  ...(port === 0 ? {} : { SVC_DOMAIN: "example.com" }),
});

async function startHaproxy(
  parts: AsyncDisposableStack,
  {
    haproxy,
    directory,
    root,
    server,
    to,
  }: {
    haproxy: string;
    directory: string;
    root: { certificate: string };
    server: { certificate: string; key: string };
    to: number;
  },
): Promise<{ port: number; pid: number }> {
  const port = await freePort();
  const pem = readFileSync(server.certificate, "utf8") + readFileSync(server.key, "utf8");
  writeFileSync(join(directory, "server.pem"), pem);
  copyFileSync(root.certificate, join(directory, "clients.pem"));
  const page = readFileSync(join(support.root, "docs/mutual-tls.md"), "utf8");
  const [, text = ""] = /```haproxy\n(.+?)```/s.exec(page) ?? [];
  const file = join(directory, "haproxy.cfg");
  writeFileSync(
    file,
    text
      .replaceAll("/etc/svc/", `${directory}/`)
      .replaceAll("127.0.0.1:8000", `127.0.0.1:${to}`)
      .replaceAll("8443", String(port)),
  );
  const child = await support.keep(
    parts,
    async () => Bun.spawn([haproxy, "-db", "-f", file], { stdio: ["ignore", "ignore", "ignore"] }),
    (started) => started.kill("SIGKILL"),
  );
  for (let tries = 0; tries < 100 && child.exitCode === null; tries += 1) {
    const tls = { rejectUnauthorized: false };
    const answer = await fetch(`https://127.0.0.1:${port}/healthcheck`, { tls }).catch(() => undefined);
    if (answer?.ok) return { port, pid: child.pid };
    await Bun.sleep(50);
  }
  throw new support.BenchError("HAProxy does not answer");
}

const startClient = (parts: AsyncDisposableStack, task: Task) =>
  support.keep(
    parts,
    async () =>
      Bun.spawn(
        [process.execPath, "--no-orphans", join(support.root, "bench/mtls/client.ts"), JSON.stringify(task)],
        {
          env: support.environment(),
          stdin: "pipe",
          stdout: "pipe",
          stderr: "inherit",
        },
      ),
    (started) => started.kill("SIGKILL"),
  );

async function load(parts: AsyncDisposableStack, task: Task): Promise<Result> {
  const child = await startClient(parts, task);
  const text = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new support.BenchError("the client failed");
  return JSON.parse(text) as Result;
}

/** `openssl s_time`, timed by us: its own clock has whole seconds. */
async function handshakes(
  parts: AsyncDisposableStack,
  port: number,
  args: readonly string[],
): Promise<number> {
  const seconds = String(handshakeSeconds);
  const began = performance.now();
  const child = await support.keep(
    parts,
    async () =>
      Bun.spawn(
        ["openssl", "s_time", "-connect", `127.0.0.1:${port}`, "-time", seconds, "-www", "/x", ...args],
        {
          env: support.environment(),
          stdin: "ignore",
          stdout: "pipe",
          stderr: "pipe",
        },
      ),
    (started) => started.kill("SIGKILL"),
  );
  const output = await new Response(child.stdout).text();
  const count = Number(/^(\d+) connections in \d+ real seconds/m.exec(output)?.[1] ?? 0);
  if (count === 0) throw new support.BenchError(`openssl s_time failed: ${output.trim()}`);
  return (count / (performance.now() - began)) * 1000;
}

function report(trials: readonly Trial[]): void {
  console.log(`Medians of the rounds.${"requests/s".padStart(30)}   processor time of each`);
  for (const { path, name, rates, costs } of trials) {
    const rate = Math.round(support.median(rates)).toLocaleString("en");
    const cost = support.median(costs).toFixed(1);
    console.log(`${path.padEnd(15)}${name.padEnd(25)}${rate.padStart(12)}${cost.padStart(13)} µs`);
  }
  const rateOf = (name: string, path: Trial["path"]) =>
    support.median(trials.find((trial) => trial.name === name && trial.path === path)!.rates);
  const compare = (path: Trial["path"], one: string, other: string, aim: number) => {
    const ratio = rateOf(one, path) / rateOf(other, path);
    const what = `${path}, ${one} / ${other}`;
    console.log(
      `${what.padEnd(62)}${ratio.toFixed(2).padStart(6)}   aim: at least ${aim}, ${support.verdict(ratio >= aim)}`,
    );
  };
  console.log("");
  for (const path of ["/healthcheck", "/whoami"] as const) {
    compare(path, "mTLS port", "Bun's TLS", aims.bun);
    compare(path, "mTLS port, certificate", "Bun's TLS", aims.bun);
    compare(path, ofAll("mTLS port"), ofAll("HAProxy"), aims.haproxy);
  }
}
