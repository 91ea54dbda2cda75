import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { and, eq, sql } from "drizzle-orm";
import { revokeLease } from "../../core/access/end.ts";
import { issueLease } from "../../core/access/issue.ts";
import { revocations as revocationWork } from "../../core/access/lease.ts";
import { attemptRevocation } from "../../core/access/revoke.ts";
import { createRole } from "../../core/access/role_change.ts";
import { readConfig } from "../../core/config.ts";
import type { Actor } from "../../core/context.ts";
import { claimWork } from "../../core/outbox/work.ts";
import { type Database, openSql } from "../../drizzle/client.ts";
import { startEmbeddedPostgres } from "../../drizzle/embedded.ts";
import { accessLease, token } from "../../drizzle/schema/index.ts";
import { freePort } from "../../platform/free_port.ts";
import { createLog } from "../../platform/log.ts";
import { scramVerifier } from "../../plugins/postgresql_role/scram.ts";
import { openServerParts } from "../../server/open.ts";
import { fill } from "../api/data.ts";
import { issueTokens } from "../api/tokens.ts";
import {
  BenchError,
  keep,
  median,
  quantile,
  startDatabase,
  startProgram,
  startServer,
  svcFromSource,
  temporaryDirectory,
  verdict,
} from "../support.ts";

const pairs = 60;
const revocations = 40;
const expiring = 1000;
const users = 10;
const aims = { bare: 1.5, gone: 300, seconds: 30, slower: 2 };

/**
 * Leases of PostgreSQL roles: issuing and revoking one, compared with the SQL alone; the time from `svc access revoke` until
 * the role is gone; and 1,000 that expire at the same time, with the latency of other requests. svc and the target each have a
 * crash-safe PostgreSQL.
 */
export async function benchLeases(parts: AsyncDisposableStack): Promise<void> {
  const directory = await temporaryDirectory(parts);
  const [url, target] = [
    await startDatabase(parts, join(directory, "svc")),
    await startTarget(parts, directory),
  ];
  await fill(url, { incidents: 2000, documents: 2000 });
  const port = await freePort();
  const environment = {
    SVC_DATABASE_URL: url,
    SVC_KEY_SECRET: "a-secret-of-the-bench-of-thirty-two-characters",
    SVC_PUBLIC_URL: `http://127.0.0.1:${port}`,
    SVC_OIDC_ISSUER: "http://127.0.0.1:9",
  };
  const tokens = await issueTokens(environment, users);
  const opened = await keep(
    parts,
    () => openServerParts({ environment, config: readConfig(environment), log: createLog("silent") }),
    (server) => server.close(),
  );
  const context = { ...opened, db: opened.db as Database };
  const [row] = await context.db.select().from(token).limit(1);
  const { userName: user, jti: tokenId, expiresAt } = row!;
  const actor: Actor = { kind: "user", user, groups: [], admin: true, tokenId, expiresAt };
  await createRole(context, actor, {
    slug: "shop",
    description: "",
    plugin: "postgresql-role",
    settings: target.settings,
    groups: ["*"],
    defaultDuration: 3600,
    maxDuration: 7200,
    approval: "none" as const,
    incidentRequired: false,
    breakGlass: false,
    disabled: false,
  });

  const ours = async () => {
    const { lease } = await issueLease(context, actor, { role: "shop" });
    return () => revokeByWorker(lease.id);
  };
  const revokeByWorker = async (id: number) => {
    await revokeLease(context, actor, id);
    const among = and(eq(accessLease.id, id), eq(accessLease.state, "Revoking"));
    const [claim] = await claimWork(context, revocationWork, { among, order: [accessLease.id], limit: 1 });
    await attemptRevocation(context, claim!);
  };
  const bare = () => issueByHand(target);
  const times = await inTurn({ svc: ours, "SQL alone": bare }, pairs);
  console.log(`issue and revoke a PostgreSQL role, ${pairs} times in turn; milliseconds, median (p95):\n`);
  const line = (name: string, cells: string[]) =>
    console.log(name.padEnd(24) + cells.map((cell) => cell.padStart(18)).join(""));
  line("", ["issue", "revoke"]);
  for (const [name, took] of Object.entries(times))
    line(
      name,
      took.map((all) => `${median(all).toFixed(1)} (${quantile(all, 0.95).toFixed(1)})`),
    );
  const [issue, revoke] = [0, 1].map(
    (step) => median(times.svc![step]!) / median(times["SQL alone"]![step]!),
  );
  line("svc / SQL alone", [issue!.toFixed(2), revoke!.toFixed(2)]);
  console.log(`\nissue: aim at most ${aims.bare}, ${verdict(issue! <= aims.bare)}`);

  const { address } = await startServer(parts, directory, port, environment);
  await startProgram(parts, directory, {
    command: [...svcFromSource, "scheduler", "start"],
    env: environment,
    ready: /(worker)/,
  });
  const headers = tokens.map((text) => ({
    authorization: `Bearer ${text}`,
    "content-type": "application/json",
  }));
  const gone = await revocationTimes(address, headers[0]!, target);
  const [p50, p95] = [quantile(gone, 0.5), quantile(gone, 0.95)];
  console.log(
    `\nfrom the request to revoke until the role is gone, ${revocations} times, one worker: p50 ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms   aim: p50 at most ${aims.gone}, ${verdict(p50 <= aims.gone)}`,
  );
  await issueMany(address, headers);
  const quiet = await latencies(address, headers[0]!, async () => void (await Bun.sleep(5000)));
  const began = performance.now();
  const busy = await latencies(address, headers[0]!, async () => {
    await context.db
      .update(accessLease)
      .set({ dueAt: sql`now()` })
      .where(eq(accessLease.state, "Active"));
    while ((await target.leases()) > 0) {
      if (performance.now() - began > 180_000) throw new BenchError("leases are left after three minutes");
      await Bun.sleep(200);
    }
  });
  const seconds = (performance.now() - began) / 1000;
  const [before, during] = [quantile(quiet, 0.95), quantile(busy, 0.95)];
  console.log(`\n${expiring.toLocaleString("en")} leases that expire at the same moment, one worker:\n`);
  console.log(
    `all gone after           ${seconds.toFixed(1)} s   aim: at most ${aims.seconds}, ${verdict(seconds <= aims.seconds)}`,
  );
  console.log(
    `p95 of a list meanwhile  ${during.toFixed(1)} ms, ${before.toFixed(1)} before: x ${(during / before).toFixed(2)}   aim: at most ${aims.slower}, ${verdict(during <= aims.slower * before)}`,
  );
}

interface Target {
  settings: Record<string, string | number>;
  /** The address for the broker. */
  broker: string;
  leases(): Promise<number>;
}

async function startTarget(parts: AsyncDisposableStack, directory: string): Promise<Target> {
  const { url } = await keep(
    parts,
    () => startEmbeddedPostgres({ directory: join(directory, "target"), temporary: true }),
    (postgres) => postgres.stop(),
  );
  const admin = await keep(
    parts,
    async () => openSql(url, { max: 1 }),
    (open) => open.end({ timeout: 5 }),
  );
  const password = randomBytes(12).toString("hex");
  await admin.unsafe(`
    create role reader nologin; create role broker login createrole password '${password}';
    grant reader to broker with admin option; grant pg_signal_backend to broker`);
  const at = new URL(url);
  Object.assign(at, { username: "broker", password });
  const settings = { host: at.hostname, port: Number(at.port), database: at.pathname.slice(1) };
  return {
    settings: { ...settings, user: "broker", password, sslMode: "disable", parents: "reader" },
    broker: at.href,
    leases: async () => {
      const [row] = await admin<{ n: number }[]>`
        select count(*)::int as n from pg_roles where rolname like 'svc\\_%'`;
      return row!.n;
    },
  };
}

/** Runs the minimum statements of the plugin like a careful script, with one connection for each of the two steps. */
async function issueByHand({ broker }: Target): Promise<() => Promise<void>> {
  const name = `svc_by_hand_${randomBytes(6).toString("hex")}`;
  const verifier = await scramVerifier(randomBytes(24).toString("base64url"));
  const connected = async (work: (client: ReturnType<typeof openSql>) => Promise<unknown>) => {
    const client = openSql(broker, { max: 1, prepare: false });
    await work(client);
    await client.end({ timeout: 1 });
  };
  await connected((client) =>
    client.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`;
      const [end] = await tx`select (now() + interval '1 hour')::text as until`;
      await tx.unsafe(
        `create role ${name} login connection limit 5 password '${verifier}' valid until '${end!.until}' in role reader`,
      );
      await tx.unsafe(`comment on role ${name} is 'by hand'`);
    }),
  );
  return () =>
    connected(async (client) => {
      await client.begin(async (tx) => {
        await tx`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`;
        await tx`select shobj_description(oid, 'pg_authid') from pg_roles where rolname = ${name}`;
        await tx.unsafe(`alter role ${name} nologin`);
      });
      await client`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${name}`;
      await client.unsafe(`grant ${name} to broker with inherit true, set true`);
      await client`
        select distinct d.datname from pg_shdepend s join pg_roles r on r.oid = s.refobjid
        join pg_database d on d.oid = s.dbid where r.rolname = ${name}`;
      await client.unsafe(`reassign owned by ${name} to broker`);
      await client.unsafe(`drop owned by ${name}`);
      await client.unsafe(`drop role ${name}`);
      await client`select from pg_roles where rolname = ${name}`;
    });
}

/** The milliseconds of each step, one after the other. A work does the first step, and returns the second. */
async function inTurn(
  works: Record<string, () => Promise<() => Promise<void>>>,
  times: number,
): Promise<Record<string, [number[], number[]]>> {
  const took: Record<string, [number[], number[]]> = {};
  for (const name of Object.keys(works)) took[name] = [[], []];
  for (let round = -5; round < times; round += 1) {
    for (const [name, first] of Object.entries(works)) {
      const began = performance.now();
      const second = await first();
      const between = performance.now();
      await second();
      if (round < 0) continue;
      took[name]![0].push(between - began);
      took[name]![1].push(performance.now() - between);
    }
  }
  return took;
}

/** The milliseconds from each request to revoke until the role is gone. */
async function revocationTimes(
  address: string,
  headers: Record<string, string>,
  target: Target,
): Promise<number[]> {
  const took: number[] = [];
  for (let round = -2; round < revocations; round += 1) {
    const issued = await fetch(`${address}/access/leases/`, {
      method: "POST",
      headers,
      body: '{"role":"shop"}',
    });
    const { id } = (await issued.json()) as { id: number };
    // Longer than a worker's place is occupied: otherwise the end of the previous revocation begins this one.
    await Bun.sleep(300);
    const began = performance.now();
    await fetch(`${address}/access/leases/${id}`, { method: "DELETE", headers });
    while ((await target.leases()) > 0) await Bun.sleep(2);
    if (round >= 0) took.push(performance.now() - began);
  }
  return took;
}

async function issueMany(address: string, headers: Record<string, string>[]): Promise<void> {
  await Promise.all(
    headers.map(async (one) => {
      for (let at = 0; at < expiring / headers.length; at += 1) {
        const answer = await fetch(`${address}/access/leases/`, {
          method: "POST",
          headers: one,
          body: '{"role":"shop"}',
        });
        if (answer.status !== 201) throw new BenchError(`${answer.status}: ${await answer.text()}`);
      }
    }),
  );
}

/** The milliseconds of lists, one after the other, until `work` is done. */
async function latencies(
  address: string,
  headers: Record<string, string>,
  work: () => Promise<void>,
): Promise<number[]> {
  const took: number[] = [];
  let isDone = false;
  const working = work().finally(() => {
    isDone = true;
  });
  while (!isDone) {
    const began = performance.now();
    const answer = await fetch(`${address}/incidents/?limit=20`, { headers });
    await answer.text();
    if (answer.status !== 200) throw new BenchError(`a list answers ${answer.status}`);
    took.push(performance.now() - began);
    await Bun.sleep(20);
  }
  await working;
  return took;
}
