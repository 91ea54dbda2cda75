import { chmod, mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSql } from "../../../drizzle/client.ts";
import { findBinaries } from "../../../drizzle/embedded/binaries.ts";
import { startEmbeddedPostgres } from "../../../drizzle/embedded.ts";
import { upgrade } from "../../../drizzle/revision/upgrade.ts";

export interface SmallDatabase extends AsyncDisposable {
  /** A database at head, on a separate disk of 64 MB. */
  url: string;
  /** Writes until PostgreSQL fails with 53100 (disk_full). */
  fill(): Promise<void>;
  /** Frees the space. */
  empty(): Promise<void>;
}

/**
 * Creates a database on a tmpfs that is mounted only in the namespaces of its PostgreSQL. This requires the right to create
 * namespaces, which a container with Docker's default rules does not have.
 */
export async function startSmallDatabase(): Promise<SmallDatabase> {
  const directory = await mkdtemp(join(tmpdir(), "svc-small-database-"));
  await chmod(directory, 0o755);
  const [disk, postgres] = [join(directory, "disk"), join(directory, "postgres")];
  await mkdir(disk);
  const binaries = await findBinaries();
  const script = `#!/bin/sh
user=$(id -u) group=$(id -g)
exec unshare --user --map-root-user --mount sh -c '
  mount -t tmpfs -o size=64m,mode=0700 svc-test "$1" || exit
  user=$2 group=$3; shift 3
  exec unshare --user --map-user="$user" --map-group="$group" -- "$@"
' sh ${disk} "$user" "$group" ${binaries.postgres} "$@"
`;
  await writeFile(postgres, script, { mode: 0o755 });
  const server = await startEmbeddedPostgres({
    directory: join(directory, "server"),
    durable: false,
    temporary: true,
    binaries: { ...binaries, postgres },
  });
  const url = new URL("/small", server.url).href;
  const run = async (address: string, statement: string) => {
    const sql = openSql(address, { max: 1 });
    await sql.unsafe(statement).finally(() => sql.end());
  };
  await run(server.url, `create tablespace small location '${disk}'`);
  await run(server.url, "create database small tablespace small");
  await upgrade({ url });
  return {
    url,
    async fill() {
      await run(url, "create table filler (text text) with (autovacuum_enabled = off)");
      for (let rows = 10_000; rows > 0; rows = Math.floor(rows / 4)) {
        const insert = `insert into filler select repeat(md5(random()::text), 60) from generate_series(1, ${rows})`;
        for (;;) {
          const code = await run(url, insert).then(
            () => undefined,
            (error: { code?: string }) => error.code,
          );
          if (code === "53100") break;
          if (code !== undefined) throw new Error(`filling the disk failed with ${code}`);
        }
      }
    },
    empty: () => run(url, "drop table filler"),
    [Symbol.asyncDispose]: () => server.stop(),
  };
}
