import { freePort } from "../platform/free_port.ts";
import { issueTokens } from "./api/tokens.ts";
import * as support from "./support.ts";

const revocations = 500;
/** Milliseconds, for p99. */
const aim = 50;

/** Measures for how long a server accepts a token that it remembers after another server has revoked it. */
export async function benchToken(parts: AsyncDisposableStack): Promise<void> {
  const directory = await support.temporaryDirectory(parts);
  const databaseUrl = await support.startDatabase(parts, directory);
  const environment = {
    SVC_DATABASE_URL: databaseUrl,
    SVC_KEY_SECRET: "a-secret-of-the-bench-of-thirty-two-characters",
    SVC_PUBLIC_URL: "http://127.0.0.1:8000",
    // Never contacted: no one signs in here.
    SVC_OIDC_ISSUER: "http://127.0.0.1:9",
  };
  const tokens = await issueTokens(environment, revocations);
  const start = async () => support.startServer(parts, directory, await freePort(), environment);
  const [revoking, remembering] = [await start(), await start()];
  const times: Times[] = [];
  for (const token of tokens) times.push(await measure(token, revoking.address, remembering.address));
  console.log(`server   PostgreSQL ${await support.postgresVersion(databaseUrl)}, durable; two svc servers`);
  console.log(`\n${revocations} revocations, in ms              p50     p99     max`);
  report(
    "until the other server refuses",
    times.map(({ accepted }) => accepted),
  );
  report(
    "a request there before",
    times.map(({ request }) => request),
  );
  const p99 = support.quantile(
    times.map(({ accepted }) => accepted),
    0.99,
  );
  console.log(`p99 ${p99.toFixed(1)} ms   aim: under ${aim} ms, ${support.verdict(p99 < aim)}`);
}

function report(name: string, times: number[]): void {
  const parts = [0.5, 0.99, 1].map((part) => support.quantile(times, part).toFixed(1).padStart(8));
  console.log(`${name.padEnd(32)}${parts.join("")}`);
}

/** In milliseconds. */
interface Times {
  /** A request with a remembered token. */
  request: number;
  /** From the answer to the revocation to the answer of the first request that is refused. */
  accepted: number;
}

async function measure(token: string, revoking: string, remembering: string): Promise<Times> {
  const headers = { authorization: `Bearer ${token}` };
  const status = async () => {
    const response = await fetch(`${remembering}/whoami`, { headers });
    await response.body?.cancel();
    return response.status;
  };
  let request = 0;
  // The first request reads the token's row, and the second one finds it remembered.
  for (const _ of [1, 2]) {
    const begun = performance.now();
    if ((await status()) !== 200) throw new support.BenchError("a token was refused");
    request = performance.now() - begun;
  }
  const response = await fetch(`${revoking}/tokens/current`, { method: "DELETE", headers });
  if (response.status !== 204) throw new support.BenchError(`a revocation was refused: ${response.status}`);
  const revoked = performance.now();
  for (;;) {
    const answer = await status();
    if (answer === 401) return { request, accepted: performance.now() - revoked };
    if (answer !== 200) throw new support.BenchError(`the other server answered ${answer}`);
  }
}
