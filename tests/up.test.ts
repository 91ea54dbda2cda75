import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listenOnce } from "../platform/free_port.ts";
import { listen } from "./support/listen.ts";
import { descendants, untilGone } from "./support/process/processes.ts";
import { until } from "./support/process/until.ts";
import { environmentOf, fromSource, npmStart, startUp, wrapped } from "./support/process/up.ts";

let directory: string;
/** A data directory after its first start, for tests that need no first start. */
let data: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-up-test-"));
  data = join(directory, "data");
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** The processes of every trial. */
function partsOf(pid: number) {
  const all = descendants(pid);
  const find = (words: string) => all.find(({ command }) => command.includes(words));
  const worker = find("scheduler start")!;
  return {
    all,
    server: find("server start")!,
    worker,
    idp: find("idp start"),
    postgres: find("bin/postgres"),
  };
}

describe("svc up", () => {
  test("starts everything, prints the next steps, and Ctrl-C leaves no process", async () => {
    await using up = startUp(data);
    const address = await up.ready;
    const { all, server, worker, idp, postgres } = partsOf(up.pid);
    for (const part of [server, worker, idp, postgres]) expect(part).toBeDefined();
    expect(up.output()).toContain("Worker runs the schedule");
    expect((await fetch(`${address}/healthcheck`)).status).toBe(200);
    expect(up.output()).toContain("alice@example.com (admin), bob@example.com, carol@example.com");
    expect(up.output()).toContain("trial-password");
    expect(up.output()).toContain(`npx svc login alice@example.com --server ${address}`);

    up.process.kill("SIGINT");
    expect(await up.exit).toBe(130);
    await untilGone(all);
    expect(existsSync(join(data, "up.json"))).toBe(false);
  });

  test("keeps its secrets readable only by the owner, and out of arguments and logs; serves its metrics", async () => {
    const ports = { SVC_METRICS_PORT: "0", SVC_SCHEDULER_METRICS_PORT: "0" };
    await using up = startUp(data, ["--verbose"], { METRIC_PROVIDERS: "prometheus", ...ports });
    await up.ready;
    for (const part of ["server", "worker"]) {
      const place = await until(
        `the metrics of ${part}`,
        () => up.output().match(new RegExp(`${part}: metrics at (\\S+)`))?.[1],
      );
      expect((await fetch(place)).status).toBe(200);
    }
    const { all } = partsOf(up.pid);
    const given = environmentOf(up.pid, "server start");
    const { password } = new URL(given.SVC_DATABASE_URL!);
    const secrets = [password, given.SVC_OIDC_CLIENT_SECRET!, given.SVC_KEY_SECRET!];
    const logs = [
      ...readdirSync(join(data, "log")).map((file) => join("log", file)),
      "postgres/postgres.log",
    ];
    const texts = [...logs.map((file) => readFileSync(join(data, file), "utf8")), up.output()];
    const said = [...texts, ...all.map(({ command }) => command)].join("\n");
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(31);
      expect(said).not.toContain(secret);
    }
    for (const file of ["key_secret", "postgres/password", "log/server.log", "postgres/postgres.log"]) {
      expect([file, statSync(join(data, file)).mode & 0o077]).toEqual([file, 0]);
    }
  });

  test("a second one names the running one and changes nothing; of two at once, one starts", async () => {
    const ups = [startUp(data), startUp(data)];
    const winner = await Promise.any(ups.map(async (up) => up.ready.then(() => up)));
    const loser = ups.find((up) => up !== winner)!;
    expect(await loser.exit).toBe(1);
    const third = startUp(data);
    expect(await third.exit).toBe(1);
    expect(third.output()).toContain(`pid ${winner.pid}, ${await winner.ready}`);
    expect((await fetch(`${await winner.ready}/healthcheck`)).status).toBe(200);
    winner.process.kill("SIGTERM");
    expect(await winner.exit).toBe(143);
  });

  test("kill -9 ends every process, and the next start is normal, also if another has the number of PostgreSQL", async () => {
    const killed = startUp(data, [], {}, fromSource);
    await killed.ready;
    const { all } = partsOf(killed.pid);
    killed.process.kill("SIGKILL");
    await killed.exit;
    await untilGone(all);
    const directory = join(data, "postgres/data");
    await Bun.write(join(directory, "postmaster.pid"), `${process.pid}\n${directory}\n`);
    await using next = startUp(data);
    expect((await fetch(`${await next.ready}/healthcheck`)).status).toBe(200);
  });

  test("the next start stops a leftover PostgreSQL", async () => {
    const killed = startUp(data, [], {}, fromSource);
    await killed.ready;
    const { all, postgres } = partsOf(killed.pid);
    const watchdog = all.find(({ command }) => command.includes("svc-watchdog"))!;
    process.kill(watchdog.pid, "SIGKILL");
    await untilGone([watchdog]);
    killed.process.kill("SIGKILL");
    await killed.exit;
    await using next = startUp(data);
    await next.ready;
    await untilGone([postgres!], 0);
  });

  test("if a part exits, its last log lines are shown, and the rest is stopped", async () => {
    await using up = startUp(data);
    await up.ready;
    const { all, server } = partsOf(up.pid);
    process.kill(server.pid, "SIGKILL");
    expect(await up.exit).toBe(1);
    expect(up.output()).toContain("svc: server ended with SIGKILL");
    expect(up.output()).toContain(join(data, "log/server.log"));
    await untilGone(all);
  });

  test("if the database exits, the rest is stopped", async () => {
    await using up = startUp(data);
    await up.ready;
    const { all, postgres } = partsOf(up.pid);
    process.kill(postgres!.pid, "SIGQUIT");
    expect(await up.exit).toBe(1);
    expect(up.output()).toContain("svc: PostgreSQL exited");
    await untilGone(all);
  });

  test("the environment takes precedence: it starts no provider and no database", async () => {
    await using other = startUp(data);
    await other.ready;
    // The key secret belongs to the database, whose signing keys it decrypts.
    const { SVC_DATABASE_URL, SVC_KEY_SECRET } = environmentOf(other.pid, "server start");
    const environment = {
      SVC_DATABASE_URL: SVC_DATABASE_URL!,
      SVC_KEY_SECRET: SVC_KEY_SECRET!,
      SVC_OIDC_ISSUER: "https://id.example.com",
    };
    await using up = startUp(join(directory, "own"), [], environment);
    const address = await up.ready;
    expect((await fetch(`${address}/healthcheck`)).status).toBe(200);
    const { server, idp, postgres } = partsOf(up.pid);
    expect(server).toBeDefined();
    expect(idp).toBeUndefined();
    expect(postgres).toBeUndefined();
    expect(up.output()).not.toContain("trial-password");
  });
});

describe("started by bin/svc.mjs", () => {
  test("forwards SIGTERM, and returns its exit code", async () => {
    await using up = startUp(data, [], {}, wrapped);
    await up.ready;
    const all = descendants(up.pid);
    up.process.kill("SIGTERM");
    expect(await up.exit).toBe(143);
    await untilGone(all);
  });

  test("kill -9 of the wrapper, or of npm that started it, ends everything", async () => {
    for (const command of [wrapped, npmStart]) {
      const up = startUp(data, [], {}, command);
      await up.ready;
      const all = descendants(up.pid);
      up.process.kill("SIGKILL");
      await untilGone(all);
    }
  });
});

describe("refuses, before anything is started,", () => {
  const fresh = () => join(directory, crypto.randomUUID());

  test("all ports in use, and prints the whole command that avoids them", async () => {
    const servers = [createServer(), createServer(), createServer(), createServer()];
    const options = ["--port", "--idp-port", "--mtls-port", "--database-port"];
    const ports = await Promise.all(servers.map((server) => listen(server)));
    const dataDir = fresh();
    const up = startUp(dataDir, ["--mtls", ...options.flatMap((option, n) => [option, String(ports[n])])]);
    expect(await up.exit).toBe(1);
    const [, faults, command] = up.output().match(/^svc: (.*): npm start -- (.*)\n$/) ?? [];
    expect(faults).toBe(ports.map((port) => `Port ${port} of 127.0.0.1 is in use`).join(". "));
    expect(command?.replaceAll(/\d{4,}/g, "N")).toBe(
      `--data-dir ${dataDir} --mtls ${options.map((option) => `${option} N`).join(" ")}`.replaceAll(
        /\d{4,}/g,
        "N",
      ),
    );
    const chosen = options.map((option) => Number(command?.match(`${option} (\\d+)`)?.[1]));
    for (const port of chosen) await listenOnce("127.0.0.1", port);
    expect(existsSync(join(dataDir, "postgres"))).toBe(false);
    for (const server of servers) server.close();
  });

  test("to listen for others while the trial provider is on", async () => {
    const up = startUp(fresh(), ["--host", "0.0.0.0"]);
    expect(await up.exit).toBe(1);
    expect(up.output()).toBe(
      "svc: --host 0.0.0.0 would let others sign in with the trial users: set SVC_OIDC_ISSUER to your own issuer, or omit --host\n",
    );
  });
});
