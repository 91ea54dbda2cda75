import { describe, expect, spyOn, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Conflict, NotFound, TooManyRequests, Unavailable } from "../../platform/errors.ts";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { configHome, NOW, testIo } from "../../tests/support/cli/io.ts";
import { until } from "../../tests/support/process/until.ts";
import { ExitCode } from "../errors.ts";
import type { Fetch, Io } from "../io.ts";
import type { Lease } from "./access.ts";
import { keepRenewed, runWithAccess } from "./run.ts";
import { CommandKey } from "./use.ts";

const after = (seconds: number) => new Date(NOW.getTime() + seconds * 1000).toISOString();

function leaseUntil(seconds: number): Lease {
  return {
    id: 7,
    role: "orders-db",
    user: "amira",
    incident: null,
    request_id: null,
    name: "svc_7",
    state: "Active",
    created_at: NOW.toISOString(),
    end_reason: null,
    attempts: 0,
    expires_at: after(seconds),
    max_expires_at: after(3600),
    next_attempt_at: null,
    error: null,
  };
}

/** Renews a lease of 15 minutes with these outcomes. The last one repeats. `at`: the seconds after which it tried. */
async function renewals(outcomes: (Error | number)[], overrides: Pick<Partial<Io>, "clock" | "sleep"> = {}) {
  const io = testIo(overrides);
  const at: number[] = [];
  await keepRenewed(io, leaseUntil(900), new AbortController().signal, async () => {
    const outcome = outcomes[Math.min(at.length, outcomes.length - 1)]!;
    at.push((io.clock.now().getTime() - NOW.getTime()) / 1000);
    if (typeof outcome !== "number") throw outcome;
    return leaseUntil(outcome);
  });
  return { at, said: io.out.stderr.split("\n").filter(Boolean) };
}

/** Runs a command with a database role that a fake server issues for five minutes, after its approval. */
async function run(
  command: string[],
  { date = NOW, onRevoke = () => {} }: { date?: Date; onRevoke?: () => void } = {},
) {
  const revoked: string[] = [];
  const end = new Date(date.getTime() + 300_000).toISOString();
  const ends = { expires_at: end, max_expires_at: end };
  const approved = { id: 3, role: "orders-db", user: "amira" };
  const headers = { date: date.toUTCString() };
  const fetch: Fetch = async (url, { method }) => {
    if (url.includes("/access/requests/"))
      return Response.json({ items: [{ ...approved, expires_at: ends.expires_at }] }, { headers });
    if (method === "GET") return Response.json({ slug: "orders-db", approval: "admin" }, { headers });
    if (method === "DELETE") {
      onRevoke();
      revoked.push(new URL(url).pathname);
      return new Response(null, { status: 204 });
    }
    const credential = { kind: "database", fields: { engine: "postgresql" } };
    return Response.json({ ...leaseUntil(300), ...ends, credential }, { status: 201, headers });
  };
  const token = fakeToken({ now: NOW.getTime(), user: "amira" });
  const env = { PATH: process.env.PATH!, SVC_SERVER: "http://127.0.0.1:1", SVC_TOKEN: token };
  const io = testIo({ env, fetch });
  const failure: unknown = await runWithAccess(io, { role: "orders-db", command, wanted: {} }).catch(
    (error: unknown) => error,
  );
  return { failure, revoked, slept: io.slept, stderr: io.out.stderr };
}

describe("the lease of a running command", () => {
  test("is renewed ten minutes before it expires, up to its maximum", async () => {
    const { at, said } = await renewals([1200, 2400, 3600]);
    expect([at, said]).toEqual([[300, 600, 1800], []]);
  });

  test("is renewed after a third of it if it is shorter", async () => {
    expect((await renewals([600, 3600])).at).toEqual([300, 400]);
  });

  test.each([new Conflict("The incident is closed"), new NotFound("There is no such lease")])(
    "is not renewed after the server refused: $message",
    async (refusal) => {
      const { at, said } = await renewals([refusal]);
      expect(at).toEqual([300]);
      expect(said).toEqual([`svc: the access could not be renewed: ${refusal.message}`]);
    },
  );

  test.each([new Unavailable("The server is restarting"), new TooManyRequests(3), new Error("ENOSPC")])(
    "is renewed after a temporary failure, which is reported once: $message",
    async (failure) => {
      const { at, said } = await renewals([failure, failure, 1200, failure, 3600]);
      expect(at).toEqual([300, 315, 330, 620, 635]);
      const reported = `svc: the access could not be renewed: ${failure.message}; retrying until `;
      expect(said.map((line) => line.slice(0, reported.length))).toEqual([reported, reported]);
    },
  );

  test("is not renewed after it expired", async () => {
    const { at, said } = await renewals([new Unavailable("The server is gone")]);
    // Every 15 s, and once at its end.
    expect([at.length, at.at(-1), said.length]).toEqual([41, 900, 1]);
  });

  test("is renewed soon after the machine was suspended, and if its clock is set back meanwhile", async () => {
    for (const [jump, second] of [
      [7200, 7200],
      [-7200, -6930],
    ] as const) {
      let now = NOW.getTime();
      let slept = 0;
      const sleep = async (milliseconds: number) => {
        now += milliseconds;
        slept += milliseconds;
        // In the middle of a sleep.
        if (slept === 30_000) now = NOW.getTime() + jump * 1000;
      };
      const { at } = await renewals([3600], { sleep, clock: { now: () => new Date(now) } });
      expect(at).toEqual([second]);
    }
  });

  test("is renewed by the server's clock if that of this machine is wrong", async () => {
    for (const hours of [-2, 2]) {
      const date = new Date(NOW.getTime() - hours * 3_600_000);
      const { failure, slept } = await run(["true"], { date });
      expect([failure, slept.reduce((sum, one) => sum + one)]).toEqual([undefined, 100_000]);
    }
  });

  test("is revoked although the signal that ends the command is repeated", async () => {
    const signals = ["SIGHUP", "SIGTERM", "SIGINT", "SIGQUIT"];
    const listeners = () => signals.map((signal) => process.listenerCount(signal));
    const before = listeners();
    let during: number[] = [];
    const { failure } = await run(["sh", "-c", "kill -HUP $$"], {
      onRevoke: () => {
        during = listeners();
      },
    });
    expect(failure).toEqual(new ExitCode(129));
    expect(during).toEqual(before.map((count) => count + 1));
    expect(listeners()).toEqual(before);
  });

  test.each(["SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const)(
    "is revoked after %s, which the command receives",
    async (signal) => {
      const started = join(configHome(), "started");
      const script = `trap 'exit 9' ${signal.slice(3)}; echo > ${started}; while :; do sleep 0.05; done`;
      const running = run(["sh", "-c", script]);
      await until("the command to start", () => existsSync(started));
      process.emit(signal, signal);
      const { failure, revoked } = await running;
      expect([failure, revoked]).toEqual([new ExitCode(9), ["/access/leases/7"]]);
    },
  );

  test("is revoked after a signal before the command starts, and the command is not started", async () => {
    using _ = spyOn(CommandKey.prototype, "use").mockImplementation(async () => {
      process.emit("SIGTERM", "SIGTERM");
      return { env: {}, [Symbol.asyncDispose]: async () => {} };
    });
    const started = join(configHome(), "started");
    const { failure, revoked } = await run(["touch", started]);
    expect(failure).toEqual(new ExitCode(143));
    expect([revoked.length, existsSync(started)]).toEqual([1, false]);
  });

  test("is revoked if the command cannot be started", async () => {
    const script = join(configHome(), "script");
    writeFileSync(script, "#!/no/such/interpreter\n", { mode: 0o755 });
    const { failure, revoked, stderr } = await run([script]);
    expect(failure).toEqual(new ExitCode(127));
    expect(stderr).toBe(`svc: Command cannot be started: ${script} (ENOENT)\n`);
    expect(revoked).toEqual(["/access/leases/7"]);
  });

  test("is not issued for a command that does not exist or cannot be executed", async () => {
    const file = join(configHome(), "file");
    writeFileSync(file, "");
    for (const [program, code, message] of [
      ["no-such-program", 127, "Command not found: no-such-program"],
      [`${file}/program`, 127, `Command not found: ${file}/program`],
      [file, 126, `Command cannot be executed: ${file}`],
    ] as const)
      expect(await run([program])).toEqual({
        failure: new ExitCode(code),
        revoked: [],
        slept: [],
        stderr: `svc: ${message}\n`,
      });
  });

  test("is revoked even if it was issued while the command exited", async () => {
    const home = configHome();
    const [go, pid] = [join(home, "go"), join(home, "pid")];
    const role = { slug: "hosts", approval: "none", default_duration: 600, public_key: "x509" };
    const revoked: string[] = [];
    let issued = 0;
    const fetch: Fetch = async (url, { method }) => {
      if (method === "GET") return Response.json(role);
      if (method === "DELETE") {
        revoked.push(new URL(url).pathname);
        return new Response(null, { status: 204 });
      }
      issued += 1;
      if (issued === 2) {
        await until("the command to run", () => existsSync(pid));
        writeFileSync(go, "");
        await until("the command to exit", () => !existsSync(`/proc/${readFileSync(pid, "utf8").trim()}`));
        // Time for those who would not wait.
        await Bun.sleep(100);
      }
      const credential = { kind: "x509", fields: { certificate: "-----BEGIN CERTIFICATE-----" } };
      return Response.json({ ...leaseUntil(120), id: issued, credential }, { status: 201 });
    };
    const token = fakeToken({ now: NOW.getTime() });
    const env = { PATH: process.env.PATH!, SVC_SERVER: "http://127.0.0.1:1", SVC_TOKEN: token };
    const command = ["sh", "-c", `echo $$ > ${pid}; until [ -e ${go} ]; do sleep 0.05; done`];
    await runWithAccess(testIo({ env, fetch }), { role: "hosts", command, wanted: {} });
    expect(revoked).toEqual(["/access/leases/1", "/access/leases/2"]);
  });
});
