import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import provider from "oidc-provider/package.json" with { type: "json" };
import { freePort } from "../platform/free_port.ts";
import { insertChallenges } from "./challenges.ts";
import * as support from "./support.ts";
import { connections, type Load, prepareLoad, type Round, requestText, wrkVersion } from "./wrk.ts";

/** So many challenges and so short rounds that none exceeds its limit of 60 polls a minute and bursts of 5. */
const challenges = 80_000;
const rounds = 5;
const roundSeconds = 5;
const warmUpSeconds = 2;
const aims = { oidcProvider: 5, bare: 0.6 };

interface Contender extends support.Started {
  name: string;
  about: string[];
  requests: string[];
  /** The expected response, throughout. */
  status: number;
  body: string;
}

interface Trial {
  contender: Contender;
  load: Load;
  results: Round[];
}

/** Compares pending polls of our server, oidc-provider and a bare Bun.serve, loaded in turn by the same wrk. */
export async function benchPoll(parts: AsyncDisposableStack): Promise<void> {
  const wrk = support.ensureProgram("wrk");
  const directory = await support.temporaryDirectory(parts);
  const ours = await startOurs(parts, directory);
  const oidcProvider = await startOidcProvider(parts, directory);
  const bare = await startBare(parts, directory, ours);
  console.log(`load     ${wrkVersion(wrk)}, 1 thread, ${connections} connections;`);
  console.log(`         ${rounds} rounds of ${roundSeconds} s each, in turn, after a warm-up\n`);
  const trials: Trial[] = [];
  for (const contender of [ours, oidcProvider, bare]) {
    for (const [at, line] of contender.about.entries())
      console.log(`${(at === 0 ? contender.name : "").padEnd(15)}${line}`);
    const load = await prepareLoad(parts, wrk, contender, join(directory, `list-${trials.length}`));
    await assertAnswer(contender);
    // Sends each request once: the server has to look up a challenge before it can cache it.
    let left = contender.requests.length;
    while (left > 0) left -= (await load(warmUpSeconds)).answers;
    trials.push({ contender, load, results: [] });
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const { load, results } of trials) results.push(await load(roundSeconds));
  }
  console.log(
    "\nMedian of the rounds (each round), and the processor time that the server used for an answer:\n",
  );
  const rates: number[] = [];
  for (const trial of trials) rates.push(await report(trial));
  const [our = 0, theirs = 1, most = 1] = rates;
  console.log("");
  compare(`${ours.name} / ${oidcProvider.name}`, our / theirs, aims.oidcProvider);
  compare(`${ours.name} / ${bare.name}`, our / most, aims.bare);
}

async function startOurs(parts: AsyncDisposableStack, directory: string): Promise<Contender> {
  const databaseUrl = await support.startDatabase(parts, directory);
  const pending = await insertChallenges(databaseUrl, challenges);
  const port = await freePort();
  const started = await support.startServer(parts, directory, port, {
    SVC_DATABASE_URL: databaseUrl,
    // Never contacted: no one signs in here.
    SVC_OIDC_ISSUER: "http://127.0.0.1:9",
    SVC_RATE_POLL: "1000000000",
  });
  return {
    ...started,
    name: "svc",
    about: [
      `svc server start server/main:app on Bun ${Bun.version}; PostgreSQL ${await support.postgresVersion(databaseUrl)}, durable;`,
      `${whole(challenges)} challenges, all bound; verifier, limit of each and limit of the address are checked`,
      "(SVC_RATE_POLL is raised, since all load comes from one address; the limit is still checked)",
    ],
    requests: pending.map(({ token, verifier }) => {
      const url = `${started.address}/noauth/v1/challenge_poller/${token}`;
      return requestText("GET", url, { authorization: `Challenge ${verifier}` });
    }),
    status: 200,
    body: '{"status":"pending"}',
  };
}

async function startOidcProvider(parts: AsyncDisposableStack, directory: string): Promise<Contender> {
  const node = Bun.which("node");
  if (!node) throw new support.BenchError("node is missing: oidc-provider is measured on it");
  const { address, pid } = await support.startProgram(parts, directory, {
    command: [node, join(support.root, "bench/oidc_provider.mjs")],
    env: { NODE_ENV: "production" },
    ready: /(http:\S+#\S+)/,
  });
  const [url = "", code = ""] = address.split("#");
  const body = new URLSearchParams({
    grant_type: "urn:ietf:params:oauth:grant-type:device_code",
    device_code: code,
    client_id: "terminal",
  }).toString();
  const headers = {
    "content-type": "application/x-www-form-urlencoded",
    "content-length": String(body.length),
  };
  return {
    address: url,
    pid,
    name: "oidc-provider",
    about: [
      `${provider.version} on Node ${support.firstLine([node, "--version"])}, everything in memory; one device code, POST /token`,
    ],
    requests: [requestText("POST", url, headers, body)],
    status: 400,
    body: '"authorization_pending"',
  };
}

async function startBare(
  parts: AsyncDisposableStack,
  directory: string,
  { requests, status, body }: Contender,
): Promise<Contender> {
  const started = await support.startProgram(parts, directory, {
    command: [process.execPath, "--no-orphans", join(support.root, "bench/bare.ts")],
    ready: /bare on (\S+)/,
  });
  const about = [`on Bun ${Bun.version}, bare: gets the same requests as svc, checks nothing`];
  return { ...started, name: "Bun.serve", about, requests, status, body };
}

/** Checks one response: a load test of an error page would be meaningless. */
async function assertAnswer({ name, address, requests, status, body }: Contender): Promise<void> {
  const { hostname, port } = new URL(address);
  const socket = connect(Number(port), hostname);
  try {
    socket.write(requests[0]!);
    const [data] = await once(socket, "data", { signal: AbortSignal.timeout(10_000) });
    const answer = String(data);
    if (!answer.startsWith(`HTTP/1.1 ${status} `) || !answer.includes(body))
      throw new support.BenchError(`${name} does not answer ${status} with ${body}: ${answer}`);
  } finally {
    socket.destroy();
  }
}

/** Prints a contender's line, and returns the median of its rounds. */
async function report({ contender: { name, status }, load, results }: Trial): Promise<number> {
  const rate = support.median(results.map((round) => round.rate));
  const cost = support.median(results.map((round) => round.processorMicroseconds / round.answers));
  const each = results.map((round) => whole(round.rate)).join(", ");
  const answers = results.reduce((sum, round) => sum + round.answers, 0);
  const refused = results.reduce((sum, round) => sum + round.refused, 0);
  console.log(
    `${name.padEnd(15)}${whole(rate).padStart(7)} requests/s (${each})  ${cost.toFixed(1)} us  ` +
      `non-2xx ${whole(refused)} of ${whole(answers)}${status === 200 ? "" : `: its pending is ${status}`}`,
  );
  const wrong = status === 200 ? refused : answers - refused;
  if (wrong > 0) {
    const { statuses } = await load(warmUpSeconds, { statuses: true });
    console.log(`\n  !! ${whole(wrong)} UNEXPECTED RESPONSES: ignore the line above.`);
    console.log(`  !! Statuses of another round (429: a limit was met): ${statuses}\n`);
  } else if (status === 200) {
    console.log(`${"".padEnd(15)}      0 answers were 429`);
  }
  return rate;
}

function compare(what: string, ratio: number, aim: number): void {
  console.log(
    `${what.padEnd(20)} ${ratio.toFixed(2).padStart(6)}   aim: at least ${aim}, ${support.verdict(ratio >= aim)}`,
  );
}

const whole = (value: number) => Math.round(value).toLocaleString("en");
