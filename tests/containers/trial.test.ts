import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeChromium, Tab } from "../support/browser/chromium.ts";
import { signInAt } from "../support/browser/sign_in.ts";
import { buildImage, Compose, docker, say } from "../support/containers/containers.ts";
import { Program } from "../support/process/program.ts";
import { until } from "../support/process/until.ts";

/** `docker compose up` in a fresh clone, as in the README; each test continues from the state after the previous one. */

setDefaultTimeout(600_000);

const password = "trial-in-compose";

let image: Awaited<ReturnType<typeof buildImage>>;
let compose: Compose;
let home: string;
let token = "";
beforeAll(async () => {
  image = await buildImage();
  home = mkdtempSync(join(tmpdir(), "svc-home-"));
  compose = await Compose.in(image.directory);
  await up();
}, 1_200_000);
afterAll(async () => {
  await compose?.[Symbol.asyncDispose]();
  await closeChromium();
  image?.[Symbol.dispose]();
  rmSync(home, { recursive: true, force: true });
});

async function up() {
  await compose.done("up", "--detach", "--scale", "server=2");
  await compose.healthy(["server", "idp", "door"]);
}

/** `svc` on the host. */
function svc(...args: string[]): Program {
  const { PATH } = process.env;
  const env = { PATH, HOME: home, XDG_CONFIG_HOME: join(home, "config"), SVC_SERVER: compose.url };
  return new Program(args, { env, cwd: home });
}

async function api(path: string, init: { method?: string; body?: unknown } = {}) {
  const { method = "GET", body } = init;
  const response = await fetch(compose.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

async function titles(): Promise<string[]> {
  const { body } = await api("/incidents/");
  return body.items.map(({ title }: { title: string }) => title);
}

test("the host's terminal signs in with the host's browser, and both servers accept it", async () => {
  await using login = svc("login", "alice@example.com", "--no-browser");
  const [, url] = await login.says(/(http\S+\/challenge_validator\/[\w-]+)/);
  using tab = await Tab.open();
  await tab.goto(url!);
  await signInAt(tab, { password });
  await tab.shows("Sign in a terminal?");
  await tab.click("button[value=approve]");
  await tab.shows("Approved");
  expect(await login.exit()).toBe(0);
  await using said = svc("token");
  expect(await said.exit()).toBe(0);
  token = said.stdout.trim();
  for (const container of await compose.containers("server")) {
    const script = `console.log((await fetch("http://127.0.0.1:8000/whoami", { headers: { authorization: "Bearer ${token}" } })).status)`;
    expect(await docker("exec", container, "bun", "-e", script)).toBe("200\n");
  }
});

test("the API creates an incident", async () => {
  const [types, priorities] = [await api("/incident_types/"), await api("/incident_priorities/")];
  const { status, body } = await api("/incidents/", {
    method: "POST",
    body: {
      title: "Checkout fails",
      description: "",
      incident_type_id: types.body.items[0].id,
      incident_priority_id: priorities.body.items[0].id,
    },
  });
  expect([status, body.title]).toEqual([201, "Checkout fails"]);
  expect(await titles()).toEqual(["Checkout fails"]);
});

test("svc works inside the containers", async () => {
  const inside = (service: string, ...args: string[]) =>
    compose.done("exec", "-T", service, "svc", "database", ...args);
  expect(await inside("server", "history")).toContain("_initial");
  expect(await inside("worker", "current")).toContain("(head)");
});

test("the worker runs the schedule, and its health check confirms it", async () => {
  await compose.healthy(["worker"]);
  const status = async () => JSON.parse(await compose.exec("worker", "svc", "scheduler", "status", "--json"));
  await until(
    "a run",
    async () =>
      (await status()).tasks.some(({ last }: { last: { state: string } | null }) => last?.state === "Done"),
    // A task is due every 30 s.
    180,
  );
});

test("every container runs as an unprivileged user on a read-only root file system", async () => {
  for (const service of ["server", "worker", "idp", "door", "migrate"]) {
    for (const container of await compose.containers(service)) {
      const { Config, HostConfig } = JSON.parse(await docker("inspect", "-f", "{{json .}}", container));
      expect([service, Config.User]).toEqual([service, "1000:1000"]);
      expect([service, HostConfig.ReadonlyRootfs, HostConfig.CapDrop]).toEqual([service, true, ["ALL"]]);
    }
  }
});

test("ports are published only on loopback, and the database's not at all", async () => {
  for (const service of ["db", "server", "worker", "idp", "door"]) {
    for (const container of await compose.containers(service)) {
      const ports =
        JSON.parse(await docker("inspect", "-f", "{{json .HostConfig.PortBindings}}", container)) ?? {};
      const hosts = Object.values<{ HostIp: string }[]>(ports)
        .flat()
        .map(({ HostIp }) => HostIp);
      expect([service, hosts]).toEqual([service, ["idp", "door"].includes(service) ? ["127.0.0.1"] : []]);
    }
  }
});

test("SIGTERM ends server and worker cleanly", async () => {
  for (const service of ["server", "worker"]) {
    const [container] = await compose.containers(service);
    // The exit code would not be 0 if it had been killed after the timeout.
    await docker("stop", "--time", "120", container!);
    expect(await docker("inspect", "-f", "{{.State.ExitCode}}", container!)).toBe("0\n");
    await docker("start", container!);
  }
});

test("a server that is gone or not listening yet is skipped: every request is answered", async () => {
  const [container] = await compose.containers("server");
  const restart = docker("restart", "--time", "60", container!);
  const ready = async () => {
    await restart;
    return (await say(["docker", "exec", container!, "bun", "deploy/containers/healthcheck.ts"])).code === 0;
  };
  let over = false;
  const watched = until("the server to listen", ready, 180).finally(() => (over = true));
  // The health check of a stopping server reports it; everything else is answered.
  const ask = () => fetch(`${compose.url}/.well-known/jwks.json`, { keepalive: false });
  while (!over) expect((await ask()).status).toBe(200);
  await watched;
});

test("a dump is made by the tools", async () => {
  expect(await compose.done("run", "--rm", "tools", "svc", "database", "dump")).toContain(
    "Wrote svc-backup.dump (",
  );
});

test("after down and up, the data and the token are still there", async () => {
  await compose.done("down");
  await up();
  expect(await titles()).toEqual(["Checkout fails"]);
});

test("without the sign-in provider, users stay signed in, including the host's command line", async () => {
  await compose.done("up", "--detach", "--scale", "idp=0", "--scale", "server=2");
  expect(await compose.containers("idp")).toEqual([]);
  expect(await titles()).toEqual(["Checkout fails"]);
  await using said = svc("whoami");
  expect(await said.exit()).toBe(0);
  expect(said.stdout).toContain("alice@example.com");
});

test("a wrong database password: one line says so without the password, and nothing else starts", async () => {
  await compose.done("down");
  const wrong = "not-the-password";
  const { code } = await compose.say(["up", "--detach"], { TRIAL_DATABASE_PASSWORD: wrong });
  expect(code).not.toBe(0);
  const logs = await compose.logs("migrate");
  expect(logs.match(/svc: .*/g)).toHaveLength(1);
  expect(logs).toMatch(/svc: .*password/);
  expect(logs + (await compose.logs())).not.toContain(wrong);
  expect(await compose.containers("server")).toEqual([]);
});
