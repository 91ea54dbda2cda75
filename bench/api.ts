import { join } from "node:path";
import { freePort } from "../platform/free_port.ts";
import { email, fill } from "./api/data.ts";
import { explainLists } from "./api/explain.ts";
import { startFastApi } from "./api/fastapi.ts";
import { creates, details, type Kind, lists, searches } from "./api/requests.ts";
import { issueTokens } from "./api/tokens.ts";
import * as support from "./support.ts";
import { type Load, prepareLoad, type Round, wrkVersion } from "./wrk.ts";

const incidents = support.countFrom("SVC_BENCH_INCIDENTS", 100_000);
const size = { incidents, documents: incidents * 10 };
const clients = 50;
const poolSize = 10;
/** The average pause between a response and the next request, in milliseconds: fifty people who do nothing else. */
const pause = 1000;
const rounds = 2;
const roundSeconds = 4;
const aims = { list: 10, detail: 5, search: 30, create: undefined, ratio: 5 };

type HeadersOf = (user: number) => Record<string, string>;

interface Contender extends support.Started {
  name: string;
  about: string;
  headersOf: HeadersOf;
}

interface Trial {
  name: string;
  kind: Kind["name"];
  load: Load;
  /** Each client sends its next request immediately; or after a pause. */
  busy: Round[];
  calm: Round[];
}

/** Compares svc with FastAPI and SQLAlchemy for incidents in the same database; search and create only in svc. */
export async function benchApi(parts: AsyncDisposableStack): Promise<void> {
  const wrk = support.ensureProgram("wrk");
  const directory = await support.temporaryDirectory(parts);
  const databaseUrl = await support.startDatabase(parts, directory, { shared_buffers: "2GB" });
  const begun = performance.now();
  await fill(databaseUrl, size);
  const seconds = (performance.now() - begun) / 1000;
  const ours = await startOurs(parts, directory, databaseUrl);
  const theirs = await startTheirs(parts, directory, databaseUrl);
  console.log(
    `database ${whole(size.incidents)} incidents (a tenth Restricted), ${whole(size.documents)} documents; COPY took ${seconds.toFixed(0)} s`,
  );
  console.log(
    `         PostgreSQL ${await support.postgresVersion(databaseUrl)}, durable, shared_buffers 2 GB`,
  );
  for (const { name, about } of [ours, theirs]) console.log(`${name.padEnd(9)}${about}`);
  console.log(`load     ${wrkVersion(wrk)}, ${clients} clients; ${poolSize} database connections each\n`);
  await explainLists(databaseUrl, size);
  const contests: [Contender, Kind][] = [
    ...[lists, details(size), searches].map((kind): [Contender, Kind] => [ours, kind]),
    ...[lists, details(size)].map((kind): [Contender, Kind] => [theirs, kind]),
  ];
  const prepare = async (contender: Contender, kind: Kind): Promise<Trial> => {
    const requests = kind.requests(contender.address, contender.headersOf);
    const file = join(directory, `${contender.name}-${kind.name}`);
    const load = await prepareLoad(parts, wrk, { ...contender, requests, clients }, file);
    return { name: contender.name, kind: kind.name, load, busy: [], calm: [] };
  };
  const trials = await Promise.all(contests.map(([contender, kind]) => prepare(contender, kind)));
  await measure(trials);
  // Measured last, because the follow-up work of a report continues after its response, and would affect the others.
  const creating = await prepare(ours, creates);
  await measure([creating]);
  report([...trials, creating]);
}

async function startOurs(
  parts: AsyncDisposableStack,
  directory: string,
  databaseUrl: string,
): Promise<Contender> {
  const port = await freePort();
  const environment = {
    ...support.serverEnvironment(databaseUrl, port),
    SVC_DATABASE_POOL_SIZE: String(poolSize),
  };
  const tokens = await issueTokens(environment, clients);
  const started = await support.startServer(parts, directory, port, environment);
  return {
    ...started,
    name: "svc",
    about: `svc server start server/main:app on Bun ${Bun.version}, one process; signature and revocation are checked`,
    headersOf: (user) => ({ authorization: `Bearer ${tokens[user]}` }),
  };
}

/** It trusts the caller's name, which costs nothing. */
async function startTheirs(
  parts: AsyncDisposableStack,
  directory: string,
  databaseUrl: string,
): Promise<Contender> {
  const started = await startFastApi(parts, directory, { databaseUrl, poolSize });
  return { ...started, name: "FastAPI", headersOf: (user) => ({ "x-user": email(user + 1) }) };
}

/**
 * Runs the trials in turn for several rounds; the first round does not count. @throws BenchError for a refused request
 */
async function measure(trials: readonly Trial[]): Promise<void> {
  for (let round = 0; round <= rounds; round += 1) {
    for (const { name, kind, load, busy, calm } of trials) {
      const results = [
        await load(roundSeconds),
        await load(roundSeconds, { statuses: false, pause }),
      ] as const;
      const refused = results[0].refused + results[1].refused;
      if (refused > 0) throw new support.BenchError(`${name} refused ${whole(refused)} times to ${kind}`);
      if (round === 0) continue;
      busy.push(results[0]);
      calm.push(results[1]);
    }
  }
}

const percentiles = ["p50", "p95", "p99"] as const;
/** The median of the rounds. */
const middle = (results: readonly Round[], of: (round: Round) => number) => support.median(results.map(of));
const p95 = (results: readonly Round[]) => middle(results, ({ milliseconds }) => milliseconds.p95);

function report(trials: readonly Trial[]): void {
  const times = (results: readonly Round[]) =>
    percentiles
      .map((one) =>
        middle(results, ({ milliseconds }) => milliseconds[one])
          .toFixed(1)
          .padStart(7),
      )
      .join("");
  console.log(
    `Medians of ${rounds} rounds; p50, p95, p99 in ms. At once: each of ${clients} clients sends its next request`,
  );
  console.log(`with the answer. With pauses: ${pause} ms later, on average.\n`);
  console.log(`${"".padEnd(18)}at once: requests/s    p50    p95    p99   with pauses: p50    p95    p99`);
  for (const { name, kind, busy, calm } of trials) {
    const rate = whole(middle(busy, (round) => round.rate)).padStart(10);
    console.log(
      `${name.padEnd(9)}${kind.padEnd(9)}${rate}${"".padEnd(8)}${times(busy)}         ${times(calm)}`,
    );
  }
  console.log("");
  const [ours, theirs] = ["svc", "FastAPI"].map((name) => trials.filter((trial) => trial.name === name));
  for (const { kind, calm } of ours!) {
    const aim = aims[kind];
    if (aim !== undefined)
      console.log(
        `${kind.padEnd(9)} p95 of ${clients} clients with pauses ${p95(calm).toFixed(1).padStart(6)} ms   aim: under ${aim}, ${support.verdict(p95(calm) < aim)}`,
      );
  }
  for (const { kind, busy } of theirs!) {
    const our = ours!.find((trial) => trial.kind === kind)!;
    const ratio = middle(our.busy, ({ rate }) => rate) / middle(busy, ({ rate }) => rate);
    console.log(
      `${kind.padEnd(9)} svc / FastAPI ${ratio.toFixed(1).padStart(6)}   aim: at least ${aims.ratio}, ${support.verdict(ratio >= aims.ratio)}`,
    );
  }
}

const whole = (value: number) => Math.round(value).toLocaleString("en");
