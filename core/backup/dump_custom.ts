import { stat } from "node:fs/promises";
import { Unavailable } from "../errors.ts";
import type { DumpWork } from "./dump.ts";
import { countRows, plainName, type Runner } from "./inventory.ts";
import {
  connectionEnvironment,
  runTool,
  startTool,
  toolEnvironment,
  withPasswordFile,
} from "./tool_process.ts";
import { findTool, missingTool, type ToolName } from "./tools.ts";

const pollMilliseconds = 200;

/**
 * pg_dump, in the snapshot of our own transaction, in which the rows are counted meanwhile; then pg_restore has to be
 * able to read the table of contents, and to find every table in it.
 */
export async function dumpCustom(work: DumpWork): Promise<{ rows: number[]; bytes: number }> {
  const { sql, snapshot, inventory, unfinished, progress } = work;
  const [pgDump, pgRestore] = [await toolOf("pg_dump", work), await toolOf("pg_restore", work)];
  const env = toolEnvironment(work.env);
  const rows = await withPasswordFile(sql, (passwordFile, forget) =>
    pgDumpBeside(work, { ...env, ...connectionEnvironment(sql, passwordFile) }, pgDump, forget, () =>
      countRows(snapshot, inventory.tables),
    ),
  );
  progress?.({ doing: "checking" });
  const contents = await runTool({ command: [pgRestore, "--list", unfinished], env, signal: work.signal });
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
  env: DumpWork["env"],
  pgDump: string,
  forgetPassword: () => Promise<void>,
  beside: () => Promise<T>,
): Promise<T> {
  const { unfinished, progress, signal } = work;
  const at = { table: undefined as string | undefined, bytes: 0 };
  const show = () => progress?.({ doing: "dumping", ...at });
  const tool = startTool({
    command: [
      ...[pgDump, "--format=custom", "--no-owner", "--no-acl", "--no-password", "--verbose"],
      // Synced by whoever renames the file.
      ...["--no-sync", "--lock-wait-timeout=60s", `--snapshot=${await exportSnapshot(work.snapshot)}`],
      `--file=${unfinished}`,
    ],
    env,
    signal,
    log: (line) => {
      // It speaks of what it reads, so it has connected.
      void forgetPassword();
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
    const [result] = await Promise.all([beside(), tool.done, tool.output.pipeTo(new WritableStream())]);
    return result;
  } catch (error) {
    tool.kill();
    await tool.done.catch(() => {});
    throw error;
  } finally {
    clearInterval(poll);
  }
}

async function exportSnapshot(transaction: Runner): Promise<string> {
  const [row] = await transaction.unsafe("select pg_catalog.pg_export_snapshot() as snapshot");
  return row!.snapshot;
}

async function toolOf(name: ToolName, { major, env, tools }: DumpWork): Promise<string> {
  const found = await findTool(name, major, { env, directoriesOf: tools });
  if ("path" in found) return found.path;
  throw missingTool(name, major, found.others);
}
