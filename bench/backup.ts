import { rm } from "node:fs/promises";
import { join } from "node:path";
import { openSql } from "../drizzle/client.ts";
import { upgrade } from "../drizzle/revision/upgrade.ts";
import { startDebianPostgres } from "../tests/support/database/debian_postgres.ts";
import { ensure, programs } from "../tests/support/programs.ts";
import { freshExecutable } from "./executable.ts";
import * as support from "./support.ts";

const gigabytes = support.numberFrom("SVC_BENCH_GB", 1);
const rounds = 3;
const aim = 1.1;

interface Step {
  name: string;
  /** Seconds per round. */
  times: number[];
}

/** Compares `svc database dump` and `restore` with plain pg_dump and pg_restore. */
export async function benchBackup(parts: AsyncDisposableStack): Promise<void> {
  ensure(programs.debianPostgres);
  const directory = await support.temporaryDirectory(parts);
  const svc = await freshExecutable();
  const server = await support.keep(parts, startDebianPostgres, (started) => started.stop());
  await fillDatabase(server.url);
  const bare = join(directory, "bare.dump");
  const tool = (name: string) => join(server.tools, name);
  const env = { SVC_DATABASE_URL: server.url };
  const target = new URL(server.url);
  target.pathname = "/restored";
  const toTarget = { SVC_DATABASE_URL: target.href };
  const password = { PGPASSWORD: new URL(server.url).password };
  const admin = openSql(server.url, { max: 1 });
  parts.defer(() => admin.end({ timeout: 5 }));
  const emptyTarget = async () => {
    await admin`drop database if exists restored with (force)`;
    await admin`create database restored template template0`;
    // Writes left over from the previous step must not count for this one.
    await admin`checkpoint`;
  };
  const steps = (["svc dump", "pg_dump", "svc restore", "pg_restore"] as const).map((name): Step => ({
    name,
    times: [],
  }));
  for (let round = 0; round < rounds; round += 1) {
    const commands = [
      () => time(directory, [svc, "database", "dump"], env),
      () =>
        time(
          directory,
          [tool("pg_dump"), "-Fc", "--no-owner", "--no-acl", "-f", bare, ...on(server.url)],
          password,
        ),
      () => time(directory, [svc, "database", "restore", "--yes"], toTarget),
      () =>
        time(
          directory,
          [
            tool("pg_restore"),
            "--exit-on-error",
            "--single-transaction",
            "--no-owner",
            "--no-acl",
            ...on(target.href),
            bare,
          ],
          password,
        ),
    ];
    for (const [at, command] of commands.entries()) {
      await emptyTarget();
      steps[at]!.times.push(await command());
    }
    await rm(bare);
  }
  report(steps, await support.postgresVersion(server.url));
}

function report(steps: readonly Step[], version: string): void {
  console.log(
    `\ndump and restore of ${gigabytes} GB, PostgreSQL ${version}, not durable; median of ${rounds}, seconds\n`,
  );
  const [dump, pgDump, restore, pgRestore] = steps.map(({ times }) => support.median(times)) as [
    number,
    number,
    number,
    number,
  ];
  for (const [at, { name }] of steps.entries()) {
    const seconds = [dump, pgDump, restore, pgRestore][at]!;
    console.log(`${name.padEnd(17)}${seconds.toFixed(1).padStart(7)}`);
  }
  console.log("");
  for (const [name, ratio] of [
    ["svc dump / pg_dump", dump / pgDump],
    ["svc restore / pg_restore", restore / pgRestore],
  ] as const) {
    console.log(
      `${name.padEnd(26)}${ratio.toFixed(2)}   aim: at most ${aim}, ${support.verdict(ratio <= aim)}`,
    );
  }
}

async function time(cwd: string, command: string[], env: Record<string, string> = {}): Promise<number> {
  const started = performance.now();
  const child = Bun.spawn(command, {
    cwd,
    env: support.environment(env),
    stdio: ["ignore", "ignore", "inherit"],
  });
  const code = await child.exited;
  if (code !== 0) throw new support.BenchError(`${command.slice(0, 3).join(" ")} ended with ${code}`);
  return (performance.now() - started) / 1000;
}

/** An address for PostgreSQL's own tools, without the password, as the process list may show it. */
function on(url: string): string[] {
  const { hostname, port, username, pathname } = new URL(url);
  return ["-h", hostname, "-p", port, "-U", username, "-d", pathname.slice(1)];
}

/** Documents whose texts neither repeat nor compress better than words do. */
async function fillDatabase(url: string): Promise<void> {
  await upgrade({ url });
  const sql = openSql(url, { max: 1 });
  const each = 2400;
  const documents = Math.round((gigabytes * 1e9) / each);
  console.log(`filling a database with ${documents.toLocaleString("en")} documents`);
  try {
    // Search vectors are not measured here; without them, the size is that of the texts.
    await sql`alter table document disable trigger user`;
    await sql`alter table document_content disable trigger user`;
    await sql.unsafe(`insert into document (name, resource_type, created_at, updated_at)
      select 'Document ' || n, 'reference', now(), now() from generate_series(1, ${documents}) n`);
    await sql.unsafe(`insert into document_content (document_id, content, hash, updated_at)
      select id, (select string_agg(md5(id::text || n), ' ') from generate_series(1, ${Math.round(each / 33)}) n),
        sha256(id::text::bytea), now() from document`);
    await sql`alter table document enable trigger user`;
    await sql`alter table document_content enable trigger user`;
  } finally {
    await sql.end({ timeout: 5 });
  }
}
