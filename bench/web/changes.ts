import { join } from "node:path";
import { residentMegabytes } from "../live/server.ts";
import * as support from "../support.ts";

const changes = 10;
const aims = [
  { viewers: 100, milliseconds: 300 },
  { viewers: 1000, milliseconds: 1000, megabytes: 150 },
];

/** From the request that writes a note until the pages that are open have it. */
export async function measureChanges(
  parts: AsyncDisposableStack,
  directory: string,
  given: { svc: support.Started; token: string; browsers: { cookie: string }[]; incident: number },
): Promise<void> {
  const { svc, token, browsers, incident } = given;
  let number = 0;
  const write = async () => {
    number += 1;
    const response = await fetch(`${svc.address}/incidents/${incident}/events/`, {
      method: "POST",
      body: JSON.stringify({ description: `change ${number}, sent ${Date.now()}` }),
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    });
    if (response.status !== 201) throw new support.BenchError(`${response.status} ${await response.text()}`);
    return number;
  };
  for (const { viewers, milliseconds, megabytes } of aims) {
    const before = residentMegabytes(svc.pid);
    await using own = parts.use(new AsyncDisposableStack());
    const { address } = await support.startProgram(own, directory, {
      command: [process.execPath, "--no-orphans", join(import.meta.dir, "viewers.ts")],
      env: {
        BENCH_ADDRESS: svc.address,
        BENCH_INCIDENT: String(incident),
        BENCH_COOKIES: browsers
          .slice(0, viewers)
          .map(({ cookie }) => cookie)
          .join(" "),
        // Two connections each.
        BUN_CONFIG_MAX_HTTP_REQUESTS: String(viewers * 2 + 10),
      },
      ready: /viewers on (\S+)/,
    });
    const times: number[] = [];
    let most = residentMegabytes(svc.pid);
    for (let change = 0; change < changes; change += 1) {
      await Bun.sleep(500);
      const answer = await fetch(`${address}/${await write()}`, { signal: AbortSignal.timeout(120_000) });
      times.push(...((await answer.json()) as number[]));
      most = Math.max(most, residentMegabytes(svc.pid));
    }
    const [p50, p95] = [support.quantile(times, 0.5), support.quantile(times, 0.95)];
    console.log(
      `change on ${viewers} open pages: p50 ${p50} ms, p95 ${p95} ms   aim: p95 under ${milliseconds}, ${support.verdict(p95 < milliseconds)}`,
    );
    const extra = most - before;
    if (megabytes !== undefined)
      console.log(
        `memory of the server: ${extra.toFixed(0)} MB more   aim: under ${megabytes}, ${support.verdict(extra < megabytes)}`,
      );
  }
}
