import { readFileSync } from "node:fs";
import { join } from "node:path";
import { populate } from "../../core/populate/populate.ts";
import { openDatabase } from "../../drizzle/client.ts";
import { systemClock } from "../../platform/clock.ts";
import { freePort } from "../../platform/free_port.ts";
import { issueTokens } from "../api/tokens.ts";
import * as support from "../support.ts";
import { Watchers } from "./watchers.ts";
import { benchWriters } from "./writers.ts";

const manyWatchers = support.countFrom("SVC_BENCH_WATCHERS", 10_000);
const watchers = Math.min(1000, manyWatchers);
const seconds = support.numberFrom("SVC_BENCH_SECONDS", 10);
const eventsPerSecond = 50;
const goals = { megabytes: 150, p95: 150, share: 0.6 };

interface Contender extends support.Started {
  path: string;
  /** Sends an event to every watcher. */
  send(description: string): Promise<unknown>;
}

/** Streams of one server: its memory with many watchers, delay, and messages a second beside a bare Bun.serve. */
export async function benchLiveServer(parts: AsyncDisposableStack): Promise<void> {
  const directory = await support.temporaryDirectory(parts);
  const databaseUrl = await support.startDatabase(parts, directory);
  const { svc, token } = await startSvc(parts, directory, databaseUrl);
  const bare = await startBare(parts, directory);
  console.log(`svc      svc server start server/main:app on Bun ${Bun.version}, one process`);
  console.log("bare     Bun.serve that sends the same bytes, without a database\n");
  await measureMemory(svc, token);
  await measureDelay(svc, token);
  await measureMessages(svc, bare, token);
  await benchWriters({ databaseUrl, seconds, directory, address: svc.address, token });
}

async function watch(svc: Contender, path: string, count: number, token: string): Promise<Watchers> {
  const clients = new Watchers();
  await clients.add(svc.address, path, count, token);
  return clients;
}

async function measureMemory(svc: Contender, token: string): Promise<void> {
  // Warm: what the first requests load is not the watchers'.
  using _first = await watch(svc, svc.path, 10, token);
  await svc.send("warm");
  const before = residentMegabytes(svc.pid);
  using clients = await watch(svc, svc.path, manyWatchers, token);
  for (let n = 0; n < 5; n += 1) {
    await svc.send(`${n}`);
    await Bun.sleep(1000);
  }
  const extra = residentMegabytes(svc.pid) - before;
  const each = (extra * 1024) / manyWatchers;
  console.log(
    `memory   ${manyWatchers} watchers: ${extra.toFixed(0)} MB more than without, ${each.toFixed(1)} kB each; each got ${(clients.received / manyWatchers).toFixed(2)} of 5 events`,
  );
  console.log(
    `         goal for 10,000: under ${goals.megabytes} MB: ${support.verdict(extra < goals.megabytes)}\n`,
  );
}

/** From the request that writes a note to the bytes at each watcher. */
async function measureDelay(svc: Contender, token: string): Promise<void> {
  using clients = await watch(svc, svc.path, watchers, token);
  const delays: number[] = [];
  clients.onEvent = (description) => {
    const sent = Number(description);
    if (Number.isFinite(sent) && sent > 0) delays.push(performance.now() - sent);
  };
  for (const end = performance.now() + seconds * 1000; performance.now() < end;) {
    await svc.send(String(performance.now()));
    await Bun.sleep(100 + Math.random() * 100);
  }
  await Bun.sleep(500);
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((fraction) => support.quantile(delays, fraction));
  console.log(
    `delay    from the request to each of ${watchers} watchers: p50 ${p50!.toFixed(0)} ms, p95 ${p95!.toFixed(0)} ms, p99 ${p99!.toFixed(0)} ms (${delays.length} messages)`,
  );
  console.log(`         goal: p95 under ${goals.p95} ms: ${support.verdict(p95! < goals.p95)}\n`);
}

async function measureMessages(svc: Contender, bare: Contender, token: string): Promise<void> {
  const rates: number[] = [];
  for (const [name, contender] of [
    ["svc", svc],
    ["bare", bare],
  ] as const) {
    using clients = await watch(contender, contender.path, watchers, token);
    await contender.send("warm");
    await Bun.sleep(500);
    const before = clients.received;
    const begun = performance.now();
    const sending: Promise<unknown>[] = [];
    let sent = 0;
    while (performance.now() - begun < seconds * 1000) {
      sending.push(contender.send(String(performance.now())));
      sent += 1;
      const next = begun + (sent * 1000) / eventsPerSecond;
      await Bun.sleep(Math.max(0, next - performance.now()));
    }
    await Promise.all(sending);
    const rate = (clients.received - before) / ((performance.now() - begun) / 1000);
    rates.push(rate);
    console.log(
      `messages ${name.padEnd(5)}${Math.round(rate)} a second to ${watchers} clients at ${(sent / seconds).toFixed(0)} events/s`,
    );
  }
  const share = rates[0]! / rates[1]!;
  console.log(
    `         ${share.toFixed(2)} of bare; goal: ${goals.share}: ${support.verdict(share >= goals.share)}\n`,
  );
}

async function startSvc(
  parts: AsyncDisposableStack,
  directory: string,
  databaseUrl: string,
): Promise<{ svc: Contender; token: string }> {
  const { db, close } = openDatabase(databaseUrl, 1);
  await populate(db, systemClock).finally(close);
  const port = await freePort();
  const environment = support.serverEnvironment(databaseUrl, port);
  const [token = ""] = await issueTokens(environment, 1);
  const started = await support.startServer(parts, directory, port, environment);
  const post = async (path: string, body: object) => {
    const response = await fetch(started.address + path, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    });
    if (response.status !== 201) throw new support.BenchError(`${response.status} ${await response.text()}`);
    return (await response.json()) as { id: number };
  };
  const kinds = { incident_type_id: 1, incident_priority_id: 1 };
  const text = { title: "Checkout is down", description: "", visibility: "Open" };
  const { id } = await post("/incidents/", { ...text, ...kinds });
  const path = `/incidents/${id}`;
  const svc: Contender = {
    ...started,
    path: `${path}/stream`,
    send: (description) => post(`${path}/events/`, { description }),
  };
  return { svc, token };
}

async function startBare(parts: AsyncDisposableStack, directory: string): Promise<Contender> {
  const started = await support.startProgram(parts, directory, {
    command: [process.execPath, join(import.meta.dir, "bare.ts")],
    ready: /bare on (\S+)/,
  });
  const send = (description: string) => {
    const event = {
      id: 123_456,
      at: new Date().toISOString(),
      actor: "user1@example.com",
      source: "core",
      kind: "note",
      description,
      data: {},
    };
    const body = `id: 123456\nevent: event\ndata: ${JSON.stringify(event)}\n\n`;
    return fetch(started.address, { method: "POST", body });
  };
  return { ...started, path: "/", send };
}

/** Of a program with its workers. */
export function residentMegabytes(pid: number): number {
  const [, kilobytes] = readFileSync(`/proc/${pid}/status`, "utf8").match(/^VmRSS:\s+(\d+) kB/m) ?? [];
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
  return children.reduce((sum, child) => sum + residentMegabytes(Number(child)), Number(kilobytes) / 1024);
}
