import { rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { Compose, docker, makeClone } from "../tests/support/containers/containers.ts";
import { ensureEngine } from "../tests/support/containers/engine.ts";
import { fill } from "./api/data.ts";
import { issueTokens } from "./api/tokens.ts";
import { people, requestsOf, size } from "./server.ts";
import * as support from "./support.ts";
import { connections, prepareLoad, wrkVersion } from "./wrk.ts";

const image = "svc-bench";
const counts = [1, 2, 4];
const paths = ["/healthcheck", "/documents/{id}"] as const;
const rounds = 3;
const publicUrl = "http://127.0.0.1:8000";
const keySecret = "a-secret-of-the-bench-of-thirty-two-characters";

type Path = (typeof paths)[number];
interface Figures {
  rate: number;
  p99: number;
}

/**
 * Servers of compose.yaml on one PostgreSQL, each with a published port, so a load balancer's overhead is not measured.
 */
export async function benchScale(parts: AsyncDisposableStack): Promise<void> {
  const wrk = support.ensureProgram("wrk");
  const seconds = support.numberFrom("SVC_BENCH_SECONDS", 5);
  const cores = availableParallelism();
  const compose = await prepare(parts);
  await up(compose, 1);
  const [db] = await compose.containers("db");
  const databaseUrl = `postgres://svc:svc@${await published(db!, 5432)}/svc`;
  await fill(databaseUrl, size);
  const environment = { SVC_DATABASE_URL: databaseUrl, SVC_KEY_SECRET: keySecret, SVC_PUBLIC_URL: publicUrl };
  const tokens = await issueTokens({ ...environment, SVC_OIDC_ISSUER: "http://127.0.0.1:9" }, people);
  const headersOf = (person: number) => ({ authorization: `Bearer ${tokens[person]}` });
  const directory = await support.temporaryDirectory(parts);
  console.log(`load     ${wrkVersion(wrk)}, ${connections} connections in all, a wrk for each container;`);
  console.log(`         ${rounds} rounds of ${seconds} s each, after one that does not count`);
  console.log(
    `note     servers, PostgreSQL and wrk share ${cores} cores: once these are busy, more containers add nothing\n`,
  );
  console.log("Medians of the rounds.     containers   requests/s   p99 ms   to one");
  const single = new Map<Path, number>();
  for (const count of counts) {
    await up(compose, count);
    const addresses = await addressesOf(compose);
    for (const path of paths) {
      const loads = await Promise.all(
        addresses.map((address, at) =>
          prepareLoad(
            parts,
            wrk,
            {
              // Processor time is not reported here, so the process does not matter.
              address,
              pid: process.pid,
              clients: connections / count,
              requests: requestsOf({ address, headersOf }, path),
            },
            join(directory, `list-${at}`),
          ),
        ),
      );
      const results: Figures[] = [];
      for (let round = 0; round <= rounds; round += 1) {
        const all = await Promise.all(loads.map((load) => load(seconds)));
        if (all.some(({ refused }) => refused > 0)) throw new support.BenchError(`${path} was refused`);
        const figures = {
          rate: all.reduce((sum, { rate }) => sum + rate, 0),
          p99: Math.max(...all.map(({ milliseconds }) => milliseconds.p99)),
        };
        if (round > 0) results.push(figures);
      }
      report(path, count, results, single);
    }
  }
}

/** The clone, its image and a project; all of them are removed at the end. */
async function prepare(parts: AsyncDisposableStack): Promise<Compose> {
  ensureEngine();
  const clone = await support.keep(parts, makeClone, (directory) =>
    rmSync(directory, { recursive: true, force: true }),
  );
  await support.keep(
    parts,
    () => docker("build", "--quiet", "--tag", image, clone),
    async () => void (await docker("image", "rm", image)),
  );
  // JSON is YAML.
  writeFileSync(
    join(clone, "compose.scale.yaml"),
    JSON.stringify({
      services: {
        db: { ports: ["127.0.0.1::5432"] },
        // Skips the defaults, because the bench inserts its own rows.
        migrate: { command: ["sh", "-c", "deploy/containers/first_start && svc database upgrade"] },
        server: {
          ports: ["127.0.0.1::8000"],
          environment: { SVC_KEY_SECRET: keySecret, SVC_PUBLIC_URL: publicUrl },
        },
      },
    }),
  );
  const files = ["compose.yaml", "compose.scale.yaml"];
  return support.keep(
    parts,
    () => Compose.in(clone, files, { RELEASE_IMAGE: image, TRIAL_DATABASE_PASSWORD: "svc" }),
    (compose) => compose[Symbol.asyncDispose](),
  );
}

async function up(compose: Compose, count: number): Promise<void> {
  await compose.done("up", "--detach", "--no-build", "--scale", `server=${count}`, "server");
  await compose.healthy(["server"]);
}

async function addressesOf(compose: Compose): Promise<string[]> {
  const containers = await compose.containers("server");
  return Promise.all(containers.map(async (one) => `http://${await published(one, 8000)}`));
}

/** The address of a container's port on this machine. */
async function published(container: string, port: number): Promise<string> {
  return (await docker("port", container, String(port))).split("\n")[0]!.trim();
}

function report(path: Path, count: number, results: Figures[], single: Map<Path, number>): void {
  const rate = support.median(results.map((one) => one.rate));
  const p99 = support.median(results.map((one) => one.p99));
  if (count === 1) single.set(path, rate);
  const ratio = rate / (single.get(path) ?? rate);
  const columns = [
    path.padEnd(27),
    String(count).padStart(10),
    Math.round(rate).toLocaleString("en").padStart(13),
    p99.toFixed(1).padStart(9),
    ratio.toFixed(2).padStart(9),
  ];
  console.log(columns.join(""));
}
