import { chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSql } from "../../../drizzle/client.ts";
import { chooseAccount } from "../../../drizzle/embedded/account.ts";
import { freePort } from "../../../platform/free_port.ts";
import { until } from "../process/until.ts";
import { findDebianPostgres, missingDebianPostgres } from "../programs.ts";

/** One server of the pair. */
export interface Member {
  port: number;
  /** The address of this server, for the superuser and the database `svc`. */
  url: string;
  start(): Promise<void>;
  /** Sends SIGKILL to the postmaster and all its processes, which resets connections. */
  kill(): Promise<void>;
  /** Sends SIGSTOP to all of them, so clients get no more answers. */
  freeze(): Promise<void>;
  promote(): Promise<void>;
}

export interface Replicas extends AsyncDisposable {
  primary: Member;
  standby: Member;
  /** The address of both servers. */
  url: string;
}

const password = "of-replicas-in-tests";

/**
 * Starts two of Debian's PostgreSQL servers with synchronous streaming replication: transactions that the first acknowledges
 * are on the second's disk. Both end with `dispose`.
 *
 * @throws Error with the command to install PostgreSQL
 */
export async function startReplicas(): Promise<Replicas> {
  const found = findDebianPostgres();
  if (!found) throw new Error(missingDebianPostgres);
  const directory = await mkdtemp(join(tmpdir(), "svc-replicas-"));
  const account = chooseAccount();
  if (account.owner) await chown(directory, account.owner.uid, account.owner.gid);
  const run = async (program: string, args: readonly string[]) => {
    const child = Bun.spawn([...account.prefix, join(found.directory, program), ...args], {
      ...account.spawn,
      cwd: "/",
      env: { PATH: process.env.PATH, LC_ALL: "C", PGPASSWORD: password },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const said = await new Response(child.stderr).text();
    if ((await child.exited) !== 0) throw new Error(`${program}: ${said}`);
  };
  const secret = join(directory, "password");
  await writeFile(secret, password, { mode: 0o600 });
  if (account.owner) await chown(secret, account.owner.uid, account.owner.gid);
  const [a, b] = await Promise.all(["a", "b"].map((name) => member(join(directory, name))));
  await run("initdb", [
    `--pgdata=${a!.data}`,
    "--username=svc",
    `--pwfile=${secret}`,
    "--auth=scram-sha-256",
    "--no-sync",
  ]);
  await writeFile(join(a!.data, "pg_hba.conf"), "host all,replication all 127.0.0.1/32 scram-sha-256\n");
  await a!.start();
  const admin = openSql(a!.url.replace(/svc$/, "postgres"), { max: 1 });
  await admin`create database svc`;
  const base = ["--pgdata", b!.data, "--write-recovery-conf", "--checkpoint=fast", "--no-sync"];
  await run("pg_basebackup", [...base, "--dbname", `${a!.url.replace(/svc$/, "")}?application_name=standby`]);
  await b!.start();
  // Only on this server: the other one must not wait for a standby when it is promoted.
  await writeFile(join(a!.data, "postgresql.auto.conf"), "synchronous_standby_names = 'standby'\n");
  await admin`select pg_reload_conf()`;
  await until("the standby to be synchronous", async () => {
    const [state] = await admin`select from pg_stat_replication where sync_state = 'sync'`;
    return state !== undefined;
  });
  await admin.end();
  return {
    primary: a!,
    standby: b!,
    url: `postgres://svc:${password}@127.0.0.1:${a!.port},127.0.0.1:${b!.port}/svc?target_session_attrs=read-write`,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([a!.kill(), b!.kill()]);
      await rm(directory, { recursive: true, force: true });
    },
  };

  async function member(data: string) {
    const port = await freePort();
    const url = `postgres://svc:${password}@127.0.0.1:${port}/svc`;
    let child: Bun.Subprocess | undefined;
    const settings = [
      "listen_addresses=127.0.0.1",
      "unix_socket_directories=",
      "fsync=off",
      "max_connections=200",
    ];
    // The parent of a server's processes is the postmaster, also in a user namespace.
    const signal = async (name: string) => {
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const children = await Bun.file(`/proc/${child.pid}/task/${child.pid}/children`).text();
      for (const pid of [String(child.pid), ...children.trim().split(" ")]) {
        if (pid !== "") Bun.spawnSync(["kill", `-${name}`, pid]);
      }
    };
    return {
      data,
      port,
      url,
      start: async () => {
        const flags = settings.flatMap((setting) => ["-c", setting]);
        const server = Bun.spawn(
          [...account.prefix, join(found!.directory, "postgres"), "-D", data, "-p", String(port), ...flags],
          {
            ...account.spawn,
            cwd: "/",
            env: { PATH: process.env.PATH, LC_ALL: "C" },
            stdio: ["ignore", "ignore", "pipe"],
          },
        );
        child = server;
        let said = "";
        void (async () => {
          const decoder = new TextDecoder();
          for await (const piece of server.stderr) said += decoder.decode(piece, { stream: true });
        })();
        await until("PostgreSQL to be ready", () => {
          if (server.exitCode !== null) throw new Error(`postgres ended: ${said}`);
          return said.includes("ready to accept");
        });
      },
      kill: async () => {
        await signal("KILL");
        await child?.exited;
      },
      freeze: () => signal("STOP"),
      promote: () => run("pg_ctl", ["promote", "-D", data]),
    };
  }
}
