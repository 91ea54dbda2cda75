import { describe, expect, spyOn, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Conflict, NotFound, TooManyRequests, Unavailable } from "../../platform/errors.ts";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { configHome, NOW, testIo } from "../../tests/support/cli/io.ts";
import { until } from "../../tests/support/process/until.ts";
import { ExitCode } from "../errors.ts";
import type { Fetch } from "../io.ts";
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

/** Renews a lease of 5 minutes with these outcomes. The last one repeats. */
async function renewals(...outcomes: (Error | number)[]) {
  const io = testIo();
  let tries = 0;
  await keepRenewed(io, leaseUntil(300), new AbortController().signal, async () => {
    const outcome = outcomes[Math.min(tries++, outcomes.length - 1)]!;
    if (typeof outcome !== "number") throw outcome;
    return leaseUntil(outcome);
  });
  return { tries, said: io.out.stderr.split("\n").filter(Boolean), slept: io.slept };
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
  test("is renewed a minute before it expires, up to its maximum", async () => {
    const { tries, said, slept } = await renewals(900, 3600);
    expect(said).toEqual([]);
    expect(tries).toBe(2);
    // Waits until 60 s before the end of the first lease, then of the renewed one. The third lasts up to the maximum.
    expect(slept.slice(0, 2)).toEqual([240_000, 600_000]);
  });

  test.each([new Conflict("The incident is closed"), new NotFound("There is no such lease")])(
    "is not renewed after the server refused: $message",
    async (refusal) => {
      const { tries, said } = await renewals(refusal);
      expect(tries).toBe(1);
      expect(said).toEqual([`svc: the access could not be renewed: ${refusal.message}`]);
    },
  );

  test.each([new Unavailable("The server is restarting"), new TooManyRequests(3), new Error("ENOSPC")])(
    "is renewed after a temporary failure: $message",
    async (failure) => {
      const { tries, said } = await renewals(failure, failure, 3600);
      expect(tries).toBe(3);
      expect(said).toHaveLength(2);
    },
  );

  test("is not renewed after it expired", async () => {
    const { tries } = await renewals(new Unavailable("The server is gone"));
    // Every 15 s of the last minute, and once at its end.
    expect(tries).toBe(5);
  });

  test("is renewed by the server's clock if that of this machine is wrong", async () => {
    for (const hours of [-2, 2]) {
      const date = new Date(NOW.getTime() - hours * 3_600_000);
      const { failure, slept } = await run(["true"], { date });
      expect([failure, slept]).toEqual([undefined, [240_000]]);
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
