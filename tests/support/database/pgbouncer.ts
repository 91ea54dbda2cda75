import { spawn } from "node:child_process";
import { chown, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSql } from "../../../drizzle/client.ts";
import { chooseAccount } from "../../../drizzle/embedded/account.ts";
import { freePort } from "../../../platform/free_port.ts";
import { until } from "../process/until.ts";
import { pgbouncer } from "../programs.ts";

/** PgBouncer in front of PostgreSQL, in transaction pooling mode. */
export interface Pooler extends AsyncDisposable {
  /** The address of the same database through PgBouncer. */
  url: string;
}

/**
 * Starts PgBouncer with the configuration of docs/scale.md and this many connections to PostgreSQL. It uses the connection
 * that was idle for longest, so no test passes only because it gets the same connection again. It ends with this process,
 * even if that is killed.
 */
export async function startPgbouncer(databaseUrl: string, connections: number): Promise<Pooler> {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  const directory = await mkdtemp(join(tmpdir(), "svc-pgbouncer-"));
  const [settings, users] = [join(directory, "pgbouncer.ini"), join(directory, "users")];
  const own = await freePort();
  await writeFile(users, `"${username}" "${password}"\n`, { mode: 0o600 });
  const places = {
    "svc = host=db.example.com port=5432": `${pathname.slice(1)} = host=${hostname} port=${port}`,
    "listen_addr = 0.0.0.0": "listen_addr = 127.0.0.1",
    "listen_port = 6432": `listen_port = ${own}`,
    "auth_file = /etc/pgbouncer/userlist.txt": `auth_file = ${users}`,
    "default_pool_size = 20": `default_pool_size = ${connections}`,
  };
  let example = await documented();
  for (const [there, here] of Object.entries(places)) {
    if (!example.includes(`${there}\n`)) throw new Error(`docs/scale.md no longer says: ${there}`);
    example = example.replace(there, here);
  }
  await writeFile(settings, `${example}unix_socket_dir =\nserver_round_robin = 1\n`, { mode: 0o600 });
  const account = chooseAccount();
  if (account.owner) {
    for (const path of [directory, settings, users]) await chown(path, account.owner.uid, account.owner.gid);
  }
  // The shell ends it when its standard input closes, also because this process has exited.
  const script = '"$@" </dev/null & read -r _; kill $!; wait $!';
  const command = ["sh", "-c", script, "sh", ...account.prefix, pgbouncer, settings];
  const child = spawn(command[0]!, command.slice(1), {
    ...account.spawn,
    env: { PATH: process.env.PATH },
    stdio: ["pipe", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk) => (said += chunk));
  const ended = new Promise((settle) => child.once("close", settle));
  const url = new URL(databaseUrl);
  url.port = String(own);
  const pooler = {
    url: url.href,
    [Symbol.asyncDispose]: async () => {
      child.stdin.end();
      await ended;
      await rm(directory, { recursive: true, force: true });
    },
  };
  try {
    await until("PgBouncer to answer", () => answers(pooler.url));
    return pooler;
  } catch (error) {
    await pooler[Symbol.asyncDispose]();
    throw new Error(`${(error as Error).message}\n${said}`, { cause: error });
  }
}

/** The example in docs/scale.md. */
async function documented(): Promise<string> {
  const page = await readFile(join(import.meta.dir, "../../../docs/scale.md"), "utf8");
  const [, example] = /```ini\n(\[databases\]\n[\s\S]*?)```/.exec(page) ?? [];
  if (example === undefined) throw new Error("docs/scale.md has no example for PgBouncer");
  return example;
}

async function answers(url: string): Promise<boolean> {
  const sql = openSql(url, { max: 1 });
  try {
    await sql`select 1`;
    return true;
  } catch {
    return false;
  } finally {
    await sql.end({ timeout: 5 });
  }
}
