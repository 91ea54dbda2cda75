import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { productionIn, secrets } from "../support/container_production.ts";
import { buildImage, type Compose, docker, runName } from "../support/containers.ts";
import { until } from "../support/e2e_until.ts";

/** An installation as compose.production.yaml makes it. */

setDefaultTimeout(600_000);

let image: Awaited<ReturnType<typeof buildImage>>;
let compose: Compose;
beforeAll(async () => {
  image = await buildImage();
  compose = await productionIn(image.directory);
  await compose.done("up", "--detach", "--scale", "server=2");
  await compose.healthy(["server"]);
}, 1_200_000);
afterAll(async () => {
  await compose?.[Symbol.asyncDispose]();
  image?.[Symbol.dispose]();
});

/** Not of the health check, by which a server says that it is about to go. */
async function status(): Promise<number> {
  const url = `https://localhost:${compose.env.HTTPS_PORT}/.well-known/jwks.json`;
  return (await fetch(url, { tls: { rejectUnauthorized: false }, keepalive: false })).status;
}

test("the servers are behind TLS, and plain HTTP leads there", async () => {
  expect(await until("an answer", () => status().catch(() => undefined), 180)).toBe(200);
  const response = await fetch(`http://localhost:${compose.env.HTTP_PORT}/`, { redirect: "manual" });
  expect([response.status, response.headers.get("location")]).toEqual([308, "https://localhost/"]);
});

test("a server that is stopped and started is passed over: every request is answered", async () => {
  const [container] = await compose.containers("server");
  let over = false;
  const restart = docker("restart", "--time", "60", container!).finally(() => (over = true));
  const answers = new Map<number, number>();
  while (!over) {
    const answer = await status();
    answers.set(answer, (answers.get(answer) ?? 0) + 1);
  }
  await restart;
  expect([...answers.keys()]).toEqual([200]);
});

test("the trial's parts are left out, and only the proxy is published", async () => {
  const services = (await compose.done("ps", "--services")).split("\n");
  const running = await Promise.all(
    ["idp", "door", "server", "worker", "backup", "db", "balancer", "proxy"].map(async (service) => ({
      service,
      containers: services.includes(service) ? await compose.containers(service) : [],
    })),
  );
  for (const { service, containers } of running) {
    const count = { idp: 0, door: 0, server: 2 }[service] ?? 1;
    expect([service, containers.length]).toEqual([service, count]);
    for (const container of containers) {
      const ports = await docker("inspect", "-f", "{{json .HostConfig.PortBindings}}", container);
      expect([service, /HostPort/.test(ports)]).toEqual([service, service === "proxy"]);
    }
  }
});

test("every volume has a name: none is left when the project is gone", async () => {
  const names: string[] = [];
  for (const container of (await compose.done("ps", "--all", "--quiet")).split("\n").filter(Boolean)) {
    const mounts = JSON.parse(await docker("inspect", "-f", "{{json .Mounts}}", container));
    for (const { Type, Name } of mounts) if (Type === "volume") names.push(Name);
  }
  expect(names.length).toBeGreaterThan(2);
  expect(names.filter((name) => !name.startsWith(runName))).toEqual([]);
});

test("no secret stands in an environment, an argument or a log", async () => {
  for (const service of ["migrate", "server", "worker", "backup"]) {
    for (const container of await compose.containers(service)) {
      const text = (await docker("inspect", container)) + (await compose.logs(service));
      for (const [name, value] of Object.entries(secrets))
        expect([service, name, text.includes(value)]).toEqual([service, name, false]);
    }
  }
});

test("a dump is made at the start, by pg_dump, and only its owner may read it", async () => {
  const list = () => compose.exec("backup", "sh", "-c", "stat -c '%a %u %n' svc-*.dump");
  const line = await until("a dump", () => list().catch(() => undefined), 120);
  expect(line).toMatch(/^600 1000 svc-\d{4}-\d\d-\d\dT\d{6}Z\.dump\n$/);
  expect(await compose.logs("backup")).toContain("custom format");
});
