import { once } from "node:events";
import { connect } from "node:net";
import { BenchError, environment, keep, median } from "../support.ts";

const runs = 7;
const patienceMilliseconds = 20_000;

/** A server as started by a person, listening on 127.0.0.1 at `port`. */
export interface Startable {
  name: string;
  command: (port: number) => string[];
  env: (port: number) => Record<string, string>;
}

/**
 * Milliseconds from the start of the process to its first successful response to /healthcheck: the median of several
 * runs, with the servers in turn.
 */
export async function timeStarts(
  parts: AsyncDisposableStack,
  cwd: string,
  servers: readonly Startable[],
  freePort: () => Promise<number>,
): Promise<number[]> {
  const times = servers.map((): number[] => []);
  for (let run = 0; run < runs; run += 1) {
    for (const [at, server] of servers.entries())
      times[at]!.push(await timeStart(parts, cwd, server, await freePort()));
  }
  return times.map(median);
}

async function timeStart(parts: AsyncDisposableStack, cwd: string, server: Startable, port: number) {
  const own = parts.use(new AsyncDisposableStack());
  const begun = performance.now();
  await keep(
    own,
    async () =>
      Bun.spawn(server.command(port), {
        cwd,
        env: environment(server.env(port)),
        stdio: ["ignore", "ignore", "ignore"],
      }),
    async (child) => {
      child.kill("SIGTERM");
      await child.exited;
    },
  );
  while (!(await answers(port))) {
    if (performance.now() - begun > patienceMilliseconds)
      throw new BenchError(`${server.name} does not answer`);
    await Bun.sleep(1);
  }
  const milliseconds = performance.now() - begun;
  await own.disposeAsync();
  return milliseconds;
}

/** Sends one request on a new connection. */
async function answers(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    socket.write("GET /healthcheck HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
    const [data] = await once(socket, "data");
    return String(data).startsWith("HTTP/1.1 200 ");
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
