import { readFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../platform/free_port.ts";
import { email, fill, isRestricted } from "./api/data.ts";
import { startFastApi } from "./api/fastapi.ts";
import { issueTokens } from "./api/tokens.ts";
import { residentMegabytes } from "./schedule/memory.ts";
import { timeStarts } from "./server/start.ts";
import * as support from "./support.ts";
import { connections, type Load, prepareLoad, type Round, requestText, wrkVersion } from "./wrk.ts";

export const size = { incidents: 2000, documents: 20_000 };
export const people = 50;
const poolSize = 10;
const rounds = 5;
const roundSeconds = 4;
const idleSeconds = 10;
const aims = { uvicorn: 5 };
/** Of the requests per second of the bare Bun.serve. */
const bareAims = {
  "/healthcheck": 0.8,
  "/whoami": 0.6,
  "/documents/{id}": 0.5,
  "/incidents/{id}": 0.4,
} as const;
type Path = keyof typeof bareAims;
/** What the FastAPI application answers, too. */
const shared: readonly Path[] = ["/healthcheck", "/documents/{id}"];
/** As multiples of the bare Bun.serve of the same run: the bench fails above them. */
const budgets = { start: 3, memory: 2 };

type HeadersOf = (person: number) => Record<string, string>;

interface Contender extends support.Started {
  name: string;
  headersOf: HeadersOf;
}

interface Trial {
  name: string;
  path: Path;
  load: Load;
  results: Round[];
}

/**
 * Compares the web server as an operator starts it with uvicorn and FastAPI, and with a bare Bun.serve for the cost of
 * the application.
 */
export async function benchServer(parts: AsyncDisposableStack): Promise<void> {
  const wrk = support.ensureProgram("wrk");
  const directory = await support.temporaryDirectory(parts);
  const databaseUrl = await support.startDatabase(parts, directory);
  await fill(databaseUrl, size);
  const environment = environmentOf(databaseUrl);
  const ours = async (workers: number): Promise<Contender> => {
    const port = await freePort();
    const tokens = await issueTokens(environment(port), people);
    const started = await support.startServer(parts, directory, port, environment(port), workers);
    const headersOf: HeadersOf = (person) => ({ authorization: `Bearer ${tokens[person]}` });
    return { ...started, name: `svc, ${workers}`, headersOf };
  };
  const theirs = async (workers: number): Promise<Contender & { about: string }> => {
    const started = await startFastApi(parts, directory, { databaseUrl, poolSize, workers });
    return {
      ...started,
      name: `uvicorn, ${workers}`,
      headersOf: (person) => ({ "x-user": email(person + 1) }),
    };
  };
  const bare = async (name: string, env: Record<string, string>): Promise<Contender> => ({
    ...(await support.startProgram(parts, directory, {
      command: bareCommand,
      env: { SVC_DATABASE_URL: databaseUrl, ...env },
      ready: /bare on (\S+)/,
    })),
    name,
    headersOf: () => ({}),
  });
  const alike = await bare("Bun.serve, alike", { BENCH_ALIKE: "yes", BENCH_POOL_SIZE: String(poolSize) });
  const bares = [await bare("Bun.serve", {}), alike];
  const [one, two, uvicorn, uvicorns] = [await ours(1), await ours(2), await theirs(1), await theirs(2)];
  await Bun.sleep(idleSeconds * 1000);
  const idle = [one, two].flatMap(({ pid }) => childrenOf(pid)).map(residentMegabytes);
  const bareIdle = residentMegabytes(bares[0]!.pid);
  console.log(`svc      on Bun ${Bun.version}; each token is verified once, requests are logged`);
  console.log(`uvicorn  ${uvicorn.about}; no access log, the caller is trusted`);
  console.log(
    "bare     Bun.serve that reads the same rows for everybody; alike: also with our headers and log lines",
  );
  console.log(
    `load     ${wrkVersion(wrk)}, ${connections} connections; ${poolSize} database connections a process;`,
  );
  console.log(
    `         ${rounds} rounds of ${roundSeconds} s each, in turn, after one that does not count\n`,
  );
  const trials: Trial[] = [];
  for (const contender of [one, two, uvicorn, uvicorns, ...bares]) {
    for (const path of Object.keys(bareAims) as Path[]) {
      const isCompared = contender === one || contender === alike;
      if (!isCompared && (contender === bares[0] ? path !== "/healthcheck" : !shared.includes(path)))
        continue;
      const file = join(directory, `list-${trials.length}`);
      const requests = requestsOf(contender, path);
      const load = await prepareLoad(parts, wrk, { ...contender, requests }, file);
      trials.push({ name: contender.name, path, load, results: [] });
    }
  }
  await measure(trials);
  report(trials);
  const [start, bareStart] = await measureStarts(parts, directory, databaseUrl);
  console.log(
    `\nidle memory of one worker, its supervisor; two workers, theirs: ${idle.map(inMegabytes).join(", ")}`,
  );
  const most = Math.max(...idle);
  const met = [
    within(
      "start to the first answer of /healthcheck",
      start / bareStart,
      budgets.start,
      `${start.toFixed(0)} ms`,
    ),
    within("idle memory of the largest process", most / bareIdle, budgets.memory, inMegabytes(most)),
  ];
  if (met.includes(false)) throw new support.BenchError("over budget");
}

const bareCommand = [process.execPath, "--no-orphans", join(support.root, "bench/server/bare.ts")];

const inMegabytes = (megabytes: number): string => `${megabytes.toFixed(0)} MB`;

function within(what: string, ratio: number, budget: number, figure: string): boolean {
  const met = ratio <= budget;
  const text = `${what}, svc / Bun.serve`.padEnd(62);
  console.log(`${text}${ratio.toFixed(2)} (${figure})   budget: at most ${budget}, ${support.verdict(met)}`);
  return met;
}

const environmentOf = (databaseUrl: string) => (port: number) => ({
  SVC_DATABASE_URL: databaseUrl,
  SVC_DATABASE_POOL_SIZE: String(poolSize),
  SVC_KEY_SECRET: "a-secret-of-the-bench-of-thirty-two-characters",
  SVC_PUBLIC_URL: `http://127.0.0.1:${port}`,
  // Never contacted: no one signs in here.
  SVC_OIDC_ISSUER: "http://127.0.0.1:9",
});

/** The requests for one server. */
export function requestsOf(
  { address, headersOf }: Pick<Contender, "address" | "headersOf">,
  path: Trial["path"],
): string[] {
  if (path === "/healthcheck") return [requestText("GET", `${address}/healthcheck`, {})];
  return Array.from({ length: 2000 }, (_, at) => {
    // Most people cannot see the Restricted ones.
    const number = 1 + (at % (size.incidents - 1));
    const incident = isRestricted(number) ? number + 1 : number;
    const paths = {
      "/whoami": "/whoami",
      // Ten documents per incident.
      "/documents/{id}": `/documents/${incident * 10 - (at % 9)}`,
      "/incidents/{id}": `/incidents/${incident}`,
    };
    return requestText("GET", `${address}${paths[path]}`, headersOf(at % people));
  });
}

async function measure(trials: readonly Trial[]): Promise<void> {
  for (let round = 0; round <= rounds; round += 1) {
    for (const { name, path, load, results } of trials) {
      const result = await load(roundSeconds);
      if (result.refused > 0)
        throw new support.BenchError(`${name} refused ${result.refused} times to ${path}`);
      if (round > 0) results.push(result);
    }
  }
}

function report(trials: readonly Trial[]): void {
  console.log(`Medians of the rounds.  ${"".padEnd(18)}requests/s   p50 ms   p99 ms`);
  for (const { name, path, results } of trials) {
    const middle = (of: (round: Round) => number) => support.median(results.map(of));
    const times = [
      middle(({ milliseconds }) => milliseconds.p50),
      middle(({ milliseconds }) => milliseconds.p99),
    ];
    console.log(
      `${path.padEnd(17)}${name.padEnd(18)}${Math.round(middle(({ rate }) => rate))
        .toLocaleString("en")
        .padStart(17)}${times.map((time) => time.toFixed(1).padStart(9)).join("")}`,
    );
  }
  const rateOf = (name: string, path: Path) =>
    support.median(trials.find((one) => one.name === name && one.path === path)!.results.map((r) => r.rate));
  console.log("");
  for (const path of shared) {
    for (const workers of [1, 2])
      compare(
        `${path}, svc / uvicorn, ${workers} process${workers > 1 ? "es" : ""} each`,
        rateOf(`svc, ${workers}`, path) / rateOf(`uvicorn, ${workers}`, path),
        aims.uvicorn,
      );
  }
  for (const [path, aim] of Object.entries(bareAims) as [Path, number][])
    compare(
      `${path}, svc / Bun.serve, alike`,
      rateOf("svc, 1", path) / rateOf("Bun.serve, alike", path),
      aim,
    );
  const all = rateOf("svc, 1", "/healthcheck") / rateOf("Bun.serve", "/healthcheck");
  console.log(`${"/healthcheck, all of it: svc / Bun.serve".padEnd(50)}${all.toFixed(2).padStart(6)}`);
}

/** @returns the milliseconds of svc and of the bare Bun.serve */
export async function measureStarts(
  parts: AsyncDisposableStack,
  directory: string,
  databaseUrl: string,
): Promise<[svc: number, bare: number]> {
  const svc = (port: number) => {
    const words = ["server", "start", "server/main:app", "--port", String(port)];
    return [...support.svcFromSource, ...words];
  };
  const bare = (port: number) => ({ SVC_DATABASE_URL: databaseUrl, BENCH_PORT: String(port) });
  const [ours = 0, theirs = 0] = await timeStarts(
    parts,
    directory,
    [
      { name: "svc", command: svc, env: environmentOf(databaseUrl) },
      { name: "Bun.serve", command: () => bareCommand, env: bare },
    ],
    () => freePort(),
  );
  return [ours, theirs];
}

function compare(what: string, ratio: number, aim: number): void {
  console.log(
    `${what.padEnd(50)}${ratio.toFixed(2).padStart(6)}   aim: at least ${aim}, ${support.verdict(ratio >= aim)}`,
  );
}

/** A process and its children. Linux only. */
function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
  return [...children, pid];
}
