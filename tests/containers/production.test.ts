import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildImage, Compose, docker, say } from "../support/containers.ts";
import { freePort } from "../support/e2e_stack.ts";
import { until } from "../support/e2e_until.ts";

/** compose.production.yaml as it stands, but for its name: this machine, whose certificate Caddy signs by itself. */

setDefaultTimeout(180_000);

const password = randomBytes(24).toString("hex");
const secrets: Record<string, string> = {
  database_password: password,
  database_url: `postgres://svc:${password}@db:5432/svc`,
  key_secret: randomBytes(36).toString("base64"),
  oidc_client_secret: randomBytes(24).toString("hex"),
};

let image: Awaited<ReturnType<typeof buildImage>>;
let compose: Compose;
beforeAll(async () => {
  image = await buildImage();
  for (const [name, value] of Object.entries(secrets)) {
    const file = join(image.directory, "secrets", name);
    writeFileSync(file, `${value}\n`, { mode: 0o600 });
    if (process.getuid?.() === 0) chownSync(file, 1000, 1000);
  }
  const files = ["compose.yaml", "compose.production.yaml", ...(await standIns(image.directory))];
  compose = await Compose.in(image.directory, files, {
    PUBLIC_HOST: "localhost",
    SVC_DOMAIN: "example.com",
    SVC_OIDC_ISSUER: "https://id.example.com",
    HTTP_PORT: String(await freePort()),
    HTTPS_PORT: String(await freePort()),
  });
  await compose.done("up", "--detach", "--scale", "server=2");
  await compose.healthy(["server"]);
}, 600_000);
afterAll(async () => {
  await compose?.[Symbol.asyncDispose]();
  image?.[Symbol.dispose]();
});

/**
 * Where no image can be pulled: Debian's Caddy, and the password in the environment, since the stand-in for PostgreSQL's
 * image reads no file.
 */
async function standIns(directory: string): Promise<string[]> {
  if ((await say(["docker", "pull", "--quiet", "caddy:2"])).code === 0) return [];
  const bun = (await Bun.file(join(directory, "Dockerfile")).text()).match(/^FROM (\S+)/m)![1];
  mkdirSync(join(directory, "caddy"));
  writeFileSync(
    join(directory, "caddy/Dockerfile"),
    `FROM ${bun}
RUN apt-get update && apt-get install -y --no-install-recommends caddy && mkdir -p /data /config
ENV XDG_DATA_HOME=/data XDG_CONFIG_HOME=/config
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
`,
  );
  writeFileSync(
    join(directory, "compose.stand_ins.yaml"),
    `services:
  db: {environment: {POSTGRES_PASSWORD: "${password}", POSTGRES_PASSWORD_FILE: ""}}
  proxy: {image: svc-test-caddy, build: ./caddy}
`,
  );
  return ["compose.stand_ins.yaml"];
}

async function health(): Promise<number> {
  const url = `https://localhost:${compose.env.HTTPS_PORT}/healthcheck`;
  return (await fetch(url, { tls: { rejectUnauthorized: false }, keepalive: false })).status;
}

test("the servers are behind TLS, and plain HTTP leads there", async () => {
  expect(await until("an answer", () => health().catch(() => undefined))).toBe(200);
  const response = await fetch(`http://localhost:${compose.env.HTTP_PORT}/`, { redirect: "manual" });
  expect([response.status, response.headers.get("location")]).toEqual([308, "https://localhost/"]);
});

test("a server that is stopped and started is passed over: every request is answered", async () => {
  const [container] = await compose.containers("server");
  let over = false;
  const restart = docker("restart", container!).finally(() => (over = true));
  const answers = new Map<number, number>();
  while (!over) {
    const status = await health();
    answers.set(status, (answers.get(status) ?? 0) + 1);
  }
  await restart;
  expect([...answers.keys()]).toEqual([200]);
});

test("the trial's parts are left out, and only the proxy is published", async () => {
  const services = (await compose.done("ps", "--services")).split("\n");
  const running = await Promise.all(
    ["idp", "door", "server", "worker", "backup", "db", "proxy"].map(async (service) => ({
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
  const line = await until("a dump", () => list().catch(() => undefined), 60);
  expect(line).toMatch(/^600 1000 svc-\d{4}-\d\d-\d\dT\d{6}Z\.dump\n$/);
  expect(await compose.logs("backup")).toContain("custom format");
});
