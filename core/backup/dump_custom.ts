import { stat } from "node:fs/promises";
import type { Environment } from "../config.ts";
import { Unavailable } from "../errors.ts";
import type { DumpWork } from "./dump.ts";
import { countRows, plainName, type Runner } from "./inventory.ts";
import { connectionVariables, runTool, serverOf, startTool, withPasswordFile } from "./tool_process.ts";
import { findTool, missingTool, type Tool, type ToolName } from "./tools.ts";

const pollMilliseconds = 200;

/**
 * pg_dump, in the snapshot of our own transaction, in which the rows are counted meanwhile; then pg_restore has to be
 * able to read the table of contents, and to find every table in it.
 */
export async function dumpCustom(work: DumpWork): Promise<{ rows: number[]; bytes: number }> {
  const { sql, snapshot, inventory, unfinished, progress, env, signal } = work;
  const [pgDump, pgRestore] = [await toolOf("pg_dump", work), await toolOf("pg_restore", work)];
  const rows = await withPasswordFile(sql, (passwordFile, forget) =>
    pgDumpBeside(work, pgDump, { variables: connectionVariables(sql, pgDump, passwordFile), forget }, () =>
      countRows(snapshot, inventory.tables),
    ),
  );
  progress?.({ doing: "checking" });
  const contents = await runTool({ tool: pgRestore, args: ["--list"], reads: unfinished, env, signal });
  const missing = inventory.tables.filter(
    ({ schema, name }) => !contents.includes(` TABLE DATA ${schema} ${name} `),
  );
  if (missing.length > 0) {
    throw new Unavailable(`pg_dump has left out ${missing.map(plainName).join(", ")}: nothing was written`);
  }
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
      ...["--format=custom", "--no-owner", "--no-acl", "--no-password", "--verbose"],
      // Synced by whoever renames the file.
      ...["--no-sync", "--lock-wait-timeout=60s", `--snapshot=${await exportSnapshot(work.snapshot)}`],
    ],
    writes: unfinished,
    ...{ env, variables: password.variables, signal },
    log: (line) => {
      // It speaks of what it reads, so it has connected.
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

async function toolOf(name: ToolName, { sql, major, env, tools }: DumpWork): Promise<Tool> {
  const found = await findTool(name, major, { server: serverOf(sql), env, directoriesOf: tools });
  if ("tool" in found) return found.tool;
  throw missingTool(name, major, found.others);
}
