import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../../platform/free_port.ts";
import * as support from "../support.ts";
import { type Load, prepareLoad, type Round, requestText, wrkVersion } from "../wrk.ts";

const packages = {
  "@sveltejs/adapter-node": "5.5.7",
  "@sveltejs/kit": "2.70.4",
  "@sveltejs/vite-plugin-svelte": "7.3.1",
  postgres: "3.4.9",
  svelte: "5.57.3",
  vite: "8.3.8",
};
const rounds = 4;
const roundSeconds = support.numberFrom("SVC_BENCH_SECONDS", 4);
const readers = 50;
const aim = 3;
/** How much larger one page may be than the other, for the comparison to mean anything. */
const mostDifference = 0.2;

interface Contender extends support.Started {
  name: string;
  path: string;
}

/** Requests a second of the page of an incident, beside a minimal SvelteKit page with the same data and markup. */
export async function measureRates(
  parts: AsyncDisposableStack,
  directory: string,
  given: { svc: support.Started; databaseUrl: string; browsers: { cookie: string }[]; busy: number[] },
): Promise<void> {
  const { svc, databaseUrl, browsers, busy } = given;
  const wrk = support.ensureProgram("wrk");
  const contenders: Contender[] = [
    { ...svc, name: "svc", path: "/app/incidents" },
    { ...(await startSvelteKit(parts, directory, databaseUrl)), name: "SvelteKit", path: "/incidents" },
  ];
  const sizes = await Promise.all(contenders.map((one) => sizeOf(one, browsers[0]!, busy[0]!)));
  console.log(
    `SvelteKit ${packages["@sveltejs/kit"]}, adapter-node, postgres.js, on Node ${support.firstLine(["node", "--version"])}, one process; no script (csr = false)`,
  );
  console.log(
    `load     ${wrkVersion(wrk)}, ${readers} people, as a browser asks: svc compresses; pages of ${sizes.map((bytes) => bytes.toLocaleString("en")).join(" and ")} bytes`,
  );
  if (Math.abs(1 - sizes[0]! / sizes[1]!) > mostDifference)
    throw new support.BenchError("the pages differ too much in size");
  const trials: { name: string; load: Load; results: Round[] }[] = [];
  for (const [what, incidents] of [
    ["one incident", busy.slice(0, 1)],
    [`${busy.length} incidents`, busy],
  ] as const)
    for (const contender of contenders) {
      const { address, path } = contender;
      const name = `${contender.name}, ${what}`;
      const requests = Array.from({ length: 2000 }, (_, at) => {
        const headers = { ...browsers[(at * 7) % readers]!, "accept-encoding": "gzip, deflate, br" };
        return requestText("GET", `${address}${path}/${incidents[at % incidents.length]}`, headers);
      });
      const file = join(directory, `list-${trials.length}`);
      trials.push({
        name,
        load: await prepareLoad(parts, wrk, { ...contender, requests }, file),
        results: [],
      });
    }
  for (let round = 0; round <= rounds; round += 1)
    for (const { name, load, results } of trials) {
      const result = await load(roundSeconds);
      if (result.refused > 0) throw new support.BenchError(`${name} refused ${result.refused} times`);
      if (round > 0) results.push(result);
    }
  const rates = trials.map(({ name, results }) => {
    const rate = support.median(results.map((round) => round.rate));
    const cost = support.median(results.map((round) => round.processorMicroseconds / round.answers));
    console.log(
      `${name.padEnd(26)}${rate.toFixed(0).padStart(6)} pages/s, ${(cost / 1000).toFixed(2)} ms of the processor each`,
    );
    return rate;
  });
  const compare = (what: string, ratio: number) =>
    console.log(
      `${what}, svc / SvelteKit ${ratio.toFixed(2)}   aim: at least ${aim}, ${support.verdict(ratio >= aim)}`,
    );
  compare("the page of one incident", rates[0]! / rates[1]!);
  compare(`the pages of ${busy.length} incidents`, rates[2]! / rates[3]!);
  console.log("");
}

async function sizeOf({ address, path }: Contender, headers: { cookie: string }, id: number) {
  const answer = await fetch(`${address}${path}/${id}`, {
    headers: { ...headers, "accept-encoding": "identity" },
  });
  if (answer.status !== 200) throw new support.BenchError(`${answer.status} ${await answer.text()}`);
  return (await answer.bytes()).length;
}

/** Builds the page for production, and starts it. @throws BenchError when npm cannot install what it needs */
async function startSvelteKit(parts: AsyncDisposableStack, directory: string, databaseUrl: string) {
  const cwd = join(directory, "sveltekit");
  await cp(join(import.meta.dir, "sveltekit"), join(cwd, "src"), { recursive: true });
  const type = { private: true, type: "module", dependencies: packages };
  await writeFile(join(cwd, "package.json"), JSON.stringify(type));
  await writeFile(
    join(cwd, "svelte.config.js"),
    'import adapter from "@sveltejs/adapter-node";\nexport default { kit: { adapter: adapter() } };\n',
  );
  await writeFile(
    join(cwd, "vite.config.js"),
    'import { sveltekit } from "@sveltejs/kit/vite";\nexport default { plugins: [sveltekit()] };\n',
  );
  for (const command of [
    ["npm", "install", "--silent"],
    ["npx", "vite", "build"],
  ]) {
    const { exitCode, stderr } = Bun.spawnSync(command, { cwd, env: process.env, stdin: "ignore" });
    if (exitCode !== 0) throw new support.BenchError(`${command.join(" ")} failed: ${stderr}`);
  }
  const port = await freePort();
  return support.startProgram(parts, cwd, {
    command: ["node", "build/index.js"],
    env: {
      DATABASE_URL: databaseUrl,
      HOST: "127.0.0.1",
      PORT: String(port),
      ORIGIN: `http://127.0.0.1:${port}`,
      NODE_ENV: "production",
    },
    ready: /(http:\S+)/,
  });
}
