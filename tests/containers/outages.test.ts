import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { issueTokens } from "../../bench/api/tokens.ts";
import { accountOf } from "../support/containers/account.ts";
import {
  buildImage,
  Compose,
  docker,
  killHard,
  saidBy,
  testImage,
} from "../support/containers/containers.ts";
import { Load } from "../support/containers/load.ts";
import { pluginVariables, writeLoadFile } from "../support/containers/load_file.ts";
import { until } from "../support/process/until.ts";

/**
 * What can happen to single containers while people work: they are killed, cut off, locked out, have no room, or another
 * time of day. Clients try again under the same Idempotency-Key; each test goes on where the one before has ended.
 */

setDefaultTimeout(1_200_000);

const skewedImage = `${testImage}-skewed`;
const skewSeconds = 300;
const megabytes = 600;
const outageFile = "compose.outages.yaml";
/** The trial's own, as compose.yaml says it. */
const password = "svc";

let image: Awaited<ReturnType<typeof buildImage>>;
let compose: Compose;
let load: Load;

beforeAll(async () => {
  image = await buildImage();
  await buildSkewed(image.directory);
  const { files, databasePort } = await writeLoadFile(image.directory, testImage);
  compose = await Compose.in(image.directory, ["compose.yaml", ...files, outageFile]);
  writeOutageFile();
  await compose.done("up", "--detach", "--scale", "worker=2");
  await compose.healthy(["server", "slow_server", "door"]);
  const databaseUrl = `postgres://svc:${password}@127.0.0.1:${databasePort}/svc`;
  const [token] = await issueTokens(
    {
      ...{ SVC_DATABASE_URL: databaseUrl, SVC_PUBLIC_URL: compose.url, SVC_DOMAIN: "example.com" },
      SVC_KEY_SECRET: (await compose.exec("server", "cat", "/run/svc/key_secret")).trim(),
    },
    1,
  );
  load = await Load.start({ url: compose.url, databaseUrl, token: token!, insistent: true });
}, 1_200_000);
afterAll(async () => {
  await load?.[Symbol.asyncDispose]();
  await compose?.[Symbol.asyncDispose]();
  image?.[Symbol.dispose]();
});

/** Containers share the clock of the kernel: of the time of day, every program in this image is told another one. */
async function buildSkewed(directory: string): Promise<void> {
  writeFileSync(
    join(directory, "Dockerfile.skewed"),
    `FROM ${testImage}
USER root
RUN apt-get update -o Acquire::Retries=5 && apt-get install -y -o Acquire::Retries=5 --no-install-recommends libfaketime && ln -s /usr/lib/*/faketime/libfaketime.so.1 /usr/local/lib/faketime.so
USER 1000:1000
ENV LD_PRELOAD=/usr/local/lib/faketime.so FAKETIME_DONT_FAKE_MONOTONIC=1
`,
  );
  await docker(
    "build",
    "--quiet",
    "--tag",
    skewedImage,
    "--file",
    join(directory, "Dockerfile.skewed"),
    directory,
  );
}

/** A worker whose clock is fast, a server whose clock is slow; and little room for the database. */
function writeOutageFile(): void {
  const environment = {
    ...pluginVariables,
    SVC_DATABASE_URL: `postgres://svc:${password}@db:5432/svc`,
    SVC_PUBLIC_URL: compose.url,
    SVC_DOMAIN: "example.com",
    SVC_OIDC_ISSUER: `http://127.0.0.1:${compose.env.TRIAL_IDP_PORT}`,
    SVC_KEY_SECRET_FILE: "/run/svc/key_secret",
  };
  const skewed = {
    ...{ image: skewedImage, volumes: ["secrets:/run/svc:ro"], restart: "unless-stopped" },
    depends_on: { migrate: { condition: "service_completed_successfully" } },
  };
  const services = {
    fast_worker: {
      ...{ ...skewed, command: ["svc", "scheduler", "start"], healthcheck: { disable: true } },
      environment: { ...environment, FAKETIME: `+${skewSeconds}s` },
    },
    slow_server: {
      ...{ ...skewed, networks: { default: { aliases: ["server"] } } },
      environment: { ...environment, FAKETIME: `-${skewSeconds}s` },
    },
    // Without it, memory that no running container has mounted would be gone.
    room: {
      ...{ image: testImage, user: "0:0", init: true, command: ["sleep", "infinity"] },
      ...{ volumes: ["database:/room"], healthcheck: { disable: true } },
    },
  };
  const driver_opts = { type: "tmpfs", device: "tmpfs", o: `size=${megabytes}m` };
  const volumes = { database: { driver: "local", driver_opts } };
  writeFileSync(join(compose.directory, outageFile), JSON.stringify({ services, volumes }));
}

const psql = (statement: string) =>
  compose.exec("db", "psql", "-h", "/var/run/postgresql", "-U", "svc", "-d", "svc", "-c", statement);

async function startedAt(container: string): Promise<string> {
  return docker("inspect", "-f", "{{.State.StartedAt}}", container);
}

test("a clock that is wrong by five minutes is that of the container, and of no other", async () => {
  const clockOf = async (service: string) =>
    Number(await compose.exec(service, "bun", "-e", "console.log(Date.now())")) - Date.now();
  const near = (seconds: number, milliseconds: number) => Math.abs(milliseconds / 1000 - seconds) < 60;
  expect(near(0, await clockOf("worker"))).toBe(true);
  expect(near(skewSeconds, await clockOf("fast_worker"))).toBe(true);
  expect(near(-skewSeconds, await clockOf("slow_server"))).toBe(true);
  await load.more(50);
});

test.each(["server", "worker", "db"])("kill -9 of %s: it comes back, and work goes on", async (service) => {
  const [container] = await compose.containers(service);
  const before = await startedAt(container!);
  await killHard(container!);
  await until("another start", async () => (await startedAt(container!)) !== before, 180);
  await load.more(50);
  if (service !== "db") await compose.healthy([service]);
});

test("a worker that cannot reach the database says so once; another one does its work, and it comes back", async () => {
  const [container] = await compose.containers("worker");
  const since = new Date();
  const said = async (text: string) => (await saidBy(container!, since)).split(text).length - 1;
  const outage = "the database is unavailable";
  await docker("network", "disconnect", compose.network, container!);
  // A minute and more: longer than its lease, and than what a connection is waited for.
  await compose.slotsLater(3);
  await until("a word about it", async () => (await said(outage)) > 0, 180);
  await docker("network", "connect", compose.network, container!);
  await until("another word", async () => (await said("the database answers again")) > 0, 180);
  expect(await said(outage)).toBe(1);
  await load.more(50);
});

test("a password that is changed under way: told without it, and over when it is right again", async () => {
  const since = new Date();
  await psql("alter user svc password 'hunter2'");
  await psql("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()");
  const [server, worker] = [
    (await compose.containers("server"))[0]!,
    (await compose.containers("worker"))[0]!,
  ];
  const reason = "PostgreSQL refuses this user or password: see SVC_DATABASE_URL";
  for (const container of [server, worker])
    await until("a word about it", async () => (await saidBy(container, since)).includes(reason), 180);
  const health = await fetch(`${compose.url}/healthcheck`, { keepalive: false });
  expect([health.status, ((await health.json()) as { database: string }).database]).toEqual([
    503,
    "unreachable",
  ]);
  await psql(`alter user svc password '${password}'`);
  await load.more(50);
  for (const container of [server, worker]) {
    const log = await saidBy(container, since);
    // The trial's own is a word that is everywhere.
    expect([log.includes("hunter2"), log.includes(`svc:${password}@`)]).toEqual([false, false]);
  }
});

test("a full volume: people are told why nothing is saved, no server is ready, and it goes on when there is room", async () => {
  const since = new Date();
  const refused = load.failures.length;
  await compose.exec("room", "sh", "-c", "cat /dev/zero > /room/filler || true");
  await until(
    "a refusal",
    () => load.failures.slice(refused).some((line) => /POST .*The disk of the database is full/.test(line)),
    180,
  );
  const health = () => fetch(`${compose.url}/healthcheck`, { keepalive: false });
  await until("no server to be ready", async () => (await health()).status === 503, 60);
  const [db] = await compose.containers("db");
  const full = "No space left on device";
  await until("the reason", async () => (await saidBy(db!, since)).includes(full), 180);
  await compose.exec("room", "rm", "/room/filler");
  await load.more(100);
  await until("a server to be ready", async () => (await health()).status === 200, 60);
  expect(load.failures.slice(refused).filter((line) => /"status":500|went wrong/.test(line))).toEqual([]);
});

test("all that was acknowledged is there once, all is done, and each slot is accounted for", async () => {
  await compose.slotsLater(1);
  await load.stop();
  const { incidents, notes, deliveries } = load.acknowledged;
  expect(Math.min(incidents.length, notes.length / 3, deliveries.length)).toBeGreaterThan(20);
  const account = await accountOf(load, () => compose.logs("receiver"));
  expect(account).toMatchObject({ notOnce: [], undone: [], slots: [] });
  // A worker that is killed may have sent what it could not note: at least once, under the same id.
  expect(account.received[0]).toBe(1);
});
