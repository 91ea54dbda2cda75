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
 * Failures of single containers under load: they are killed, disconnected or locked out, have a full disk or a wrong clock.
 * Clients retry with the same Idempotency-Key; each test continues from the state after the previous one.
 */

setDefaultTimeout(1_200_000);

const skewedImage = `${testImage}-skewed`;
const skewSeconds = 300;
const megabytes = 600;
const outageFile = "compose.outages.yaml";
/** The trial's password, from compose.yaml. */
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
      SVC_DATABASE_URL: databaseUrl,
      SVC_PUBLIC_URL: compose.url,
      SVC_DOMAIN: "example.com",
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

/** Containers share the kernel's clock, so this image shows its programs a different time of day. */
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

/** A worker whose clock is fast, a server whose clock is slow, and a small disk for the database. */
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
    image: skewedImage,
    volumes: ["secrets:/run/svc:ro"],
    restart: "unless-stopped",
    depends_on: { migrate: { condition: "service_completed_successfully" } },
  };
  const services = {
    fast_worker: {
      ...skewed,
      command: ["svc", "scheduler", "start"],
      healthcheck: { disable: true },
      environment: { ...environment, FAKETIME: `+${skewSeconds}s` },
    },
    slow_server: {
      ...skewed,
      networks: { default: { aliases: ["server"] } },
      environment: { ...environment, FAKETIME: `-${skewSeconds}s` },
    },
    // Without it, the memory would be lost when no running container mounts it.
    room: {
      image: testImage,
      user: "0:0",
      init: true,
      command: ["sleep", "infinity"],
      volumes: ["database:/room"],
      healthcheck: { disable: true },
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

test("a clock that is wrong by five minutes affects only its container", async () => {
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

test("a worker without the database logs it once, another one does its work, and it recovers", async () => {
  const [container] = await compose.containers("worker");
  const since = new Date();
  const said = async (text: string) => (await saidBy(container!, since)).split(text).length - 1;
  const outage = "the database is unavailable";
  await docker("network", "disconnect", compose.network, container!);
  // Over a minute: longer than its lease and the connection timeout.
  await compose.slotsLater(3);
  await until("a word about it", async () => (await said(outage)) > 0, 180);
  await docker("network", "connect", compose.network, container!);
  await until("another word", async () => (await said("the database answers again")) > 0, 180);
  expect(await said(outage)).toBe(1);
  await load.more(50);
});

test("a changed password is reported without showing it, and recovers when corrected", async () => {
  const since = new Date();
  await psql("alter user svc password 'hunter2'");
  await psql("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()");
  const [server, worker] = [
    (await compose.containers("server"))[0]!,
    (await compose.containers("worker"))[0]!,
  ];
  const reason = " refuses this user or password: see SVC_DATABASE_URL";
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
    // The trial's password is a common word.
    expect([log.includes("hunter2"), log.includes(`svc:${password}@`)]).toEqual([false, false]);
  }
});

test("a full volume: requests get the reason, no server is ready, and it recovers with free space", async () => {
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

test("acknowledged writes are there once, all work is done, and each slot is accounted for", async () => {
  await compose.slotsLater(1);
  await load.stop();
  const { incidents, notes, deliveries } = load.acknowledged;
  expect(Math.min(incidents.length, notes.length / 3, deliveries.length)).toBeGreaterThan(20);
  const account = await accountOf(load, () => compose.logs("receiver"));
  expect(account).toMatchObject({ notOnce: [], undone: [], slots: [] });
  // A killed worker may have sent messages that it could not record: at least once, with the same id.
  expect(account.received[0]).toBe(1);
});
