import { join } from "node:path";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { describeExecutable, freshExecutable } from "../executable.ts";
import {
  BenchError,
  environment,
  firstLine,
  keep,
  median,
  quantile,
  root,
  temporaryDirectory,
  verdict,
} from "../support.ts";

const warmUps = 5;
const runs = 60;
const aim = 1.3;

/** Compares a cached `svc access get --format aws`, which the AWS tools run for every command, with `svc --version`. */
export async function benchCachedCredential(parts: AsyncDisposableStack): Promise<void> {
  const home = await temporaryDirectory(parts);
  const executable = await freshExecutable();
  const server = await keep(
    parts,
    async () => Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer }),
    (one) => one.stop(true),
  );
  const env = environment({ HOME: home, SVC_SERVER: server.url.origin, SVC_TOKEN: fakeToken() });
  const get = ["access", "get", "aws-deploy", "--format", "aws"];
  await runOnce([executable, ...get], env);
  // From now on, the server does not answer.
  await server.stop(true);
  const launcher = join(root, "bin/svc.mjs");
  const node = firstLine(["node", "--version"]);
  const ways = [
    { name: "executable", about: describeExecutable(executable), program: [executable] },
    { name: "bin/svc.mjs", about: `Node ${node}, Bun ${Bun.version}`, program: ["node", launcher] },
  ];
  for (const { name, about } of ways) console.log(`${name.padEnd(13)}${about}`);
  console.log(`\n${runs} runs of each in turn, after ${warmUps} that do not count; milliseconds:\n`);
  for (const { name, program } of ways) {
    const contenders = [
      { what: "svc --version", command: [...program, "--version"], times: [] as number[] },
      { what: "svc access get", command: [...program, ...get], times: [] as number[] },
    ];
    for (let run = -warmUps; run < runs; run += 1)
      for (const { command, times } of contenders) {
        const started = performance.now();
        await runOnce(command, env);
        if (run >= 0) times.push(performance.now() - started);
      }
    for (const { what, times } of contenders) {
      const [middle, fastest, slowest] = [median(times), quantile(times, 0), quantile(times, 1)];
      const rest = `fastest ${fastest.toFixed(1)}   slowest ${slowest.toFixed(1)}`;
      console.log(`${name.padEnd(13)}${what.padEnd(16)}median ${middle.toFixed(1).padStart(6)}   ${rest}`);
    }
    const [version = 1, cached = 0] = contenders.map(({ times }) => median(times));
    const ratio = cached / version;
    console.log(
      `${name.padEnd(13)}get / version   ${ratio.toFixed(2)}   aim: at most ${aim}, ${verdict(ratio <= aim)}\n`,
    );
  }
}

async function runOnce(command: string[], env: Record<string, string>): Promise<void> {
  const child = Bun.spawn(command, { env, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const [code, errors] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  if (code !== 0) throw new BenchError(`${command.join(" ")} ended with ${code}: ${errors}`);
}

/** The part of the API that one credential needs. */
function answer(request: Request): Response {
  const role = { slug: "aws-deploy", approval: "none" };
  if (request.method === "GET") return Response.json(role);
  const [created, expires] = [Date.now(), Date.now() + 3_600_000].map((time) => new Date(time).toISOString());
  const fields = {
    access_key_id: "ASIA0000000000000000",
    secret_access_key: "x".repeat(40),
    session_token: "x".repeat(800),
    expiration: expires,
  };
  const lease = { id: 1, role: "aws-deploy", created_at: created, expires_at: expires };
  return Response.json({ ...lease, credential: { kind: "aws", fields } }, { status: 201 });
}
