import { join } from "node:path";
import { freePort } from "../platform/free_port.ts";
import { TestBrowser } from "../tests/support/browser/browser.ts";
import { startTestIssuer } from "../tests/support/http/issuer.ts";
import { describeExecutable, freshExecutable } from "./executable.ts";
import * as support from "./support.ts";

const runs = 20;
const intervalSeconds = 2;
const aimMilliseconds = 150;

interface Way {
  name: string;
  /** The server that the terminal uses. */
  server: string;
  times: number[];
}

/** Measures from the Approve click to the end of `svc login`, with a held poll and with a poll every two seconds. */
export async function benchLogin(parts: AsyncDisposableStack): Promise<void> {
  const svc = await freshExecutable();
  const directory = await support.temporaryDirectory(parts);
  const issuer = await support.keep(parts, startTestIssuer, (started) => started.stop());
  const databaseUrl = await support.startDatabase(parts, directory);
  const { address } = await support.startServer(parts, directory, await freePort(), {
    SVC_DATABASE_URL: databaseUrl,
    SVC_OIDC_ISSUER: issuer.url,
    SVC_CHALLENGE_INTERVAL: String(intervalSeconds),
  });
  const oldServer = await support.keep(
    parts,
    async () => withoutBinding(address),
    (proxy) => proxy.stop(true),
  );
  const ways: Way[] = [
    { name: "held poll", server: address, times: [] },
    { name: `${intervalSeconds} s poll`, server: oldServer.url.origin, times: [] },
  ];
  console.log(`client   svc login of ${describeExecutable(svc)}`);
  console.log(`server   svc server start server/main:app on Bun ${Bun.version}`);
  console.log(`         PostgreSQL ${await support.postgresVersion(databaseUrl)}, durable`);
  console.log(
    `\n${runs} sign-ins of each in turn, after one that does not count. The click comes at a moment that`,
  );
  console.log(
    `moves evenly through the ${intervalSeconds} s of an interval. From the click's POST to the exit, milliseconds:\n`,
  );
  for (let run = -1; run < runs; run += 1) {
    for (const { server, times } of ways) {
      const wait = intervalSeconds * (1 + (Math.max(run, 0) + 0.5) / runs);
      const time = await signIn(parts, { svc, directory, server, address, wait });
      if (run >= 0) times.push(time);
    }
  }
  for (const { name, times } of ways) {
    const [p50, p95, slowest] = [0.5, 0.95, 1].map((fraction) =>
      support.quantile(times, fraction).toFixed(0).padStart(5),
    );
    console.log(`${name.padEnd(12)}p50 ${p50}   p95 ${p95}   slowest ${slowest}`);
  }
  const p95 = support.quantile(ways[0]!.times, 0.95);
  console.log(
    `\np95 of the held poll   ${p95.toFixed(0)} ms   aim: under ${aimMilliseconds} ms, ${support.verdict(p95 < aimMilliseconds)}`,
  );
}

interface SignIn {
  svc: string;
  directory: string;
  server: string;
  /** Where the browser goes. */
  address: string;
  /** Seconds from the start of the terminal's polling to the click. */
  wait: number;
}

/** Signs in once with the real client. @returns milliseconds from the click to its exit */
async function signIn(
  parts: AsyncDisposableStack,
  { svc, directory, server, address, wait }: SignIn,
): Promise<number> {
  const client = await support.keep(
    parts,
    async () =>
      Bun.spawn([svc, "login", "alice@example.com", "--server", server, "--no-browser", "--force"], {
        cwd: directory,
        env: support.environment({ XDG_CONFIG_HOME: join(directory, "config") }),
        stdio: ["ignore", "pipe", "pipe"],
      }),
    (started) => started.kill("SIGKILL"),
  );
  const exit = client.exited.then(() => performance.now());
  const output = await readUntil(client.stderr, /Waiting for your approval/);
  const polling = performance.now();
  const path = output.match(/\/challenge_validator\/\S+/)?.[0] ?? "";
  const browser = new TestBrowser();
  const page = await browser.open(address + path);
  await Bun.sleep(polling + wait * 1000 - performance.now());
  const click = performance.now();
  const answer = await browser.submit(page.url, page.text, { decision: "approve" });
  const milliseconds = (await exit) - click;
  if (answer.status !== 303 || client.exitCode !== 0) {
    throw new support.BenchError(
      `svc login ended with ${client.exitCode}, Approve with HTTP ${answer.status}`,
    );
  }
  return milliseconds;
}

async function readUntil(stream: ReadableStream<Uint8Array>, pattern: RegExp): Promise<string> {
  let text = "";
  for await (const chunk of stream) {
    text += Buffer.from(chunk).toString();
    if (pattern.test(text)) return text;
  }
  throw new support.BenchError(`svc login ended early: ${text.trim()}`);
}

/**
 * Proxies to a server as if it did not know verifiers, and so held no polls: the generator gets an old client's
 * request, and its response points back here.
 */
function withoutBinding(address: string): Bun.Server<undefined> {
  const proxy: Bun.Server<undefined> = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const answer = await fetch(address + pathname);
      const text = (await answer.text()).replaceAll(address, proxy.url.origin);
      return new Response(text, { status: answer.status, headers: { "content-type": "application/json" } });
    },
  });
  return proxy;
}
