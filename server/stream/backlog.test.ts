import { expect, setDefaultTimeout, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/postgres-js";
import { eventsAtOnce } from "../../core/incident/stream/read.ts";
import { openSql } from "../../drizzle/client.ts";
import * as schema from "../../drizzle/schema/index.ts";
import { createLog } from "../../platform/log.ts";
import { signedIn } from "../../tests/support/domain/actor.ts";
import { type EmptyIncident, useEmptyIncident } from "../../tests/support/http/empty_incident.ts";
import { isOpen } from "../../tests/support/http/loopback.ts";
import { signInToken } from "../../tests/support/http/server.ts";
import { StreamClient } from "../../tests/support/http/stream.ts";
import { until } from "../../tests/support/process/until.ts";
import { Channel } from "./channel.ts";
import { Connection } from "./connection.ts";

// Clients that do not read what they are sent.

setDefaultTimeout(60_000);

let { server, member, incidentId, path } = {} as EmptyIncident;
useEmptyIncident("stream", (given) => {
  ({ server, member, incidentId, path } = given);
});

/** More than the kernel keeps of a connection. */
const manyEvents = 1500;
const text = "x".repeat(19_000);

/** Records events with descriptions `<number> xxx...`, and announces them as one process does. */
async function record(from: number, count: number): Promise<void> {
  await server.db.execute(sql`
    with told as (
      insert into event (incident_id, at, actor, source, kind, description)
      select ${incidentId}::int, now(), 'system', 'core', 'note', n || ${` ${text}`}
      from generate_series(${from}::int, ${from + count - 1}::int) as n returning id)
    select pg_notify('svc_event', ${`${incidentId} `} || max(id)) from told`);
}

/** A client that asks for a stream and then reads nothing. */
async function stall(token: string, url: string): Promise<{ socket: Socket; isClosed(): boolean }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.pause();
  let isClosed = false;
  socket.on("error", () => {});
  socket.on("close", () => {
    isClosed = true;
  });
  socket.write(`GET ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${token}\r\n\r\n`);
  // Its first bytes: the stream is open.
  await new Promise((done) => socket.once("readable", done));
  return { socket, isClosed: () => isClosed };
}

const numberOf = ({ description }: { description: string }) => Number.parseInt(description, 10);

async function readTo(stream: StreamClient, last: number): Promise<number[]> {
  const numbers: number[] = [];
  while (numbers.at(-1) !== last) {
    const event = await stream.data();
    if (event === undefined) throw new Error(`the stream ended after ${numbers.at(-1)}`);
    numbers.push(numberOf(event));
  }
  return numbers;
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

test("a client that does not read is disconnected, and delays no other client", async () => {
  const slow = await stall(await signInToken(server), server.url);
  const never = await stall(await signInToken(server), server.url);
  const fast = await StreamClient.open(member, path);
  const seen = readTo(fast, manyEvents);
  for (let n = 1; n <= manyEvents; n += 10) {
    await record(n, 10);
    await Bun.sleep(5);
  }
  expect(await seen).toEqual(range(1, manyEvents));
  // Longer than a client may read nothing.
  await Bun.sleep(6000);
  // It reads what the kernel has kept for it, and then the end.
  const received: Buffer[] = [];
  slow.socket.on("data", (bytes) => received.push(bytes as Buffer));
  slow.socket.resume();
  await until("the end of its connection", () => slow.isClosed());
  const bytes = received.reduce((sum, one) => sum + one.length, 0);
  expect(bytes).toBeLessThan(manyEvents * text.length);
  // It received whole events in order, and resumes after the last one.
  const ids = [
    ...Buffer.concat(received)
      .toString()
      .matchAll(/^id: (\d+)$/gm),
  ].map(([, id]) => Number(id));
  const resumed = await StreamClient.open(member, path, { "last-event-id": String(ids.at(-2)) });
  const rest = await readTo(resumed, manyEvents);
  expect(rest).toEqual(range(manyEvents - rest.length + 1, manyEvents));
  expect(ids.slice(0, -1).length - 1 + rest.length).toBe(manyEvents);
  resumed.leave();
  fast.leave();
  const port = Number(new URL(server.url).port);
  const isGone = async () => !(await isOpen(port, never.socket.localPort!));
  await until("the end of a connection whose client never reads", isGone);
  expect(never.isClosed()).toBe(false);
  never.socket.destroy();
});

test("many events at once reach every client that reads, in order", async () => {
  const streams = await Promise.all(range(1, 10).map(() => StreamClient.open(member, path)));
  const seen = streams.map((stream) => readTo(stream, manyEvents));
  await record(1, manyEvents);
  for (const numbers of await Promise.all(seen)) expect(numbers).toEqual(range(1, manyEvents));
  for (const stream of streams) stream.leave();
});

test("a client that catches up with long events reads few of them twice", async () => {
  const events = 200;
  await record(1, events);
  // The number of rows that each read asks for is its last parameter.
  const asked: number[] = [];
  const logger = { logQuery: (_query: string, values: unknown[]) => void asked.push(Number(values.at(-1))) };
  const client = openSql(server.databaseUrl, { max: 1 });
  const channel = new Channel(
    { db: drizzle(client, { schema, logger }), log: createLog("silent") },
    incidentId,
  );
  const connection = new Connection(signedIn("root", { admin: true }), () => {});
  const follower = new StreamClient(new Response(connection.body), new AbortController());
  channel.add(connection, 0);
  expect(await readTo(follower, events)).toEqual(range(1, events));
  await client.end();
  expect(asked[0]).toBe(eventsAtOnce);
  expect(asked.reduce((sum, rows) => sum + rows, 0)).toBeLessThan(3 * events);
});

test("clients that disconnect do not affect the others", async () => {
  const streams = await Promise.all(range(1, 50).map(() => StreamClient.open(member, path)));
  const last = await StreamClient.open(member, path);
  for (const stream of streams) stream.leave();
  await record(1, 5);
  expect(await readTo(last, 5)).toEqual(range(1, 5));
  last.leave();
});
