import { stat } from "node:fs/promises";
import { Unavailable } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { quoted } from "../sql_text.ts";
import type { DumpWork } from "./dump.ts";
import { countRows, plainName, type Runner, tableName } from "./inventory.ts";
import { checkArchive } from "./restore_custom.ts";
import { appendSeal, readSeal } from "./seal.ts";
import { connectionVariables, serverOf, startTool, withPasswordFile } from "./tool_process.ts";
import { requireTool, type Tool } from "./tools.ts";

const pollMilliseconds = 200;

/**
 * Runs pg_dump in the snapshot of our own transaction, in which the rows are counted meanwhile. Then reads the whole
 * archive as `restore` does, checks that it holds exactly those rows, and seals it.
 */
export async function dumpCustom(work: DumpWork): Promise<{ rows: number[]; bytes: number }> {
  const { sql, snapshot, inventory, unfinished, progress, env, signal, major, tools } = work;
  const { tables, schemas, extensions, applied } = inventory;
  const search = { server: serverOf(sql), env, directoriesOf: tools };
  const pgDump = await requireTool("pg_dump", major, search);
  const pgRestore = await requireTool("pg_restore", major, search);
  const rows = await withPasswordFile(sql, (passwordFile, forget) =>
    pgDumpBeside(work, pgDump, { variables: connectionVariables(sql, pgDump, passwordFile), forget }, () =>
      countRows(snapshot, tables),
    ),
  );
  const show = (bytes: number) => progress?.({ doing: "checking", bytes });
  const read = await checkArchive({ path: unfinished, pgRestore, env, signal }, show);
  const wrong = [
    ...tables.filter((table, index) => read.get(tableName(table))?.rows !== rows[index]).map(plainName),
    ...[...read.keys()].filter((name) => !tables.some((table) => tableName(table) === name)),
  ];
  if (wrong.length > 0) {
    throw new Unavailable(`pg_dump did not write the rows of ${wrong.join(", ")}: nothing was written`);
  }
  const [server] = await snapshot.unsafe("select current_setting('server_version') as version");
  await appendSeal(unfinished, {
    created_at: work.clock.now().toISOString(),
    release: work.release,
    server_version: server!.version,
    revisions: applied.map(({ id, checksum }) => ({ id, checksum })),
    schemas,
    extensions,
    tables: tables.map(({ schema, name }) => ({ schema, name, ...read.get(tableName({ schema, name }))! })),
  });
  await readSeal(unfinished, show);
  return { rows, bytes: (await stat(unfinished)).size };
}

async function pgDumpBeside<T>(
  work: DumpWork,
  tool: Tool,
  password: { variables: Environment; forget: () => Promise<void> },
  beside: () => Promise<T>,
): Promise<T> {
  const { unfinished, progress, env, signal } = work;
  const at = { table: undefined as string | undefined, bytes: 0 };
  const show = () => progress?.({ doing: "dumping", ...at });
  const run = startTool({
    tool,
    args: [
      "--format=custom",
      "--no-owner",
      "--no-acl",
      "--no-password",
      "--verbose",
      "--encoding=UTF8",
      // Objects outside schemas (extensions, publications, event triggers) belong to the server's administrator, and
      // would already exist on restore.
      ...work.inventory.schemas.map((schema) => `--schema=${quoted(schema)}`),
      // The caller syncs the file when it renames it.
      "--no-sync",
      "--lock-wait-timeout=60s",
      `--snapshot=${await exportSnapshot(work.snapshot)}`,
    ],
    writes: unfinished,
    env,
    variables: password.variables,
    signal,
    log: (line) => {
      // pg_dump reports what it reads, so it has connected and no longer needs the password.
      void password.forget();
      const [, table] = /dumping contents of table "(?:public\.)?(.+)"$/.exec(line) ?? [];
      if (table === undefined) return;
      at.table = table;
      show();
    },
  });
  const poll = setInterval(async () => {
    at.bytes = (await stat(unfinished).catch(() => undefined))?.size ?? at.bytes;
    show();
  }, pollMilliseconds);
  try {
    const [result] = await Promise.all([beside(), run.done, run.output.pipeTo(new WritableStream())]);
    return result;
  } catch (error) {
    run.kill();
    await run.done.catch(() => {});
    throw error;
  } finally {
    clearInterval(poll);
  }
}

async function exportSnapshot(transaction: Runner): Promise<string> {
  const [row] = await transaction.unsafe("select pg_catalog.pg_export_snapshot() as snapshot");
  return row!.snapshot;
}
