import { InvalidInput } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { splitStatements, wordsOf } from "../revision/statements.ts";
import { copyIn, countLines } from "./copy.ts";
import { plainName, type Runner, tableName } from "./inventory.ts";
import type { OnProgress } from "./progress.ts";
import type { OpenBackup } from "./restore.ts";
import { copiedTable, EndOfScript, readScript, type ScriptTaker, withoutPsql } from "./script.ts";
import { readSeal, type Seal } from "./seal.ts";
import { runTool, startTool } from "./tool_process.ts";
import type { Tool } from "./tools.ts";

interface CustomOptions {
  path: string;
  pgRestore: Tool;
  env: Environment;
  signal?: AbortSignal;
  progress?: OnProgress;
}

const script = ["--file=-", "--no-owner", "--no-acl", "--exit-on-error"];

/**
 * Opens a pg_dump archive with our seal. pg_restore converts it to SQL, which we run on our own connection. That way
 * one transaction removes the old content, loads the backup and counts its rows (`--single-transaction --exit-on-error`
 * could include neither the first nor the last), and no other process gets the password.
 *
 * @throws InvalidInput for an archive that is damaged, or was not made by svc
 */
export async function openCustom(options: CustomOptions): Promise<OpenBackup> {
  const { path, progress } = options;
  const seal = await readSeal(path, (bytes) => progress?.({ doing: "checking", bytes }));
  const { revisions, extensions, tables } = seal;
  const schemas = seal.schemas.filter((name) => name !== "public");
  return {
    format: "custom",
    revisions,
    schemas,
    extensions,
    tables,
    load: (sql) => load(options, seal, sql),
  };
}

/**
 * Reads an archive completely, as a restore does.
 * @returns rows and bytes of each table, by SQL name
 * @throws the error that pg_restore reports
 */
export async function checkArchive(
  options: CustomOptions,
  told: (bytes: number) => void,
): Promise<Map<string, { rows: number; bytes: number }>> {
  const found = new Map<string, { rows: number; bytes: number }>();
  let bytes = 0;
  await readSection(options, "pre-data");
  await takeRows(options, {
    statements: async () => {},
    copy: async (statement, rows) => {
      const table = { rows: 0, bytes: 0 };
      for await (const piece of rows) {
        table.rows += countLines(piece);
        table.bytes += piece.length;
        bytes += piece.length;
        told(bytes);
      }
      found.set(tableName(copiedTable(statement)), table);
    },
  });
  await readSection(options, "post-data");
  return found;
}

async function readSection(options: CustomOptions, name: "pre-data" | "post-data"): Promise<string> {
  return withoutPsql(await runTool(toolRun(options, ...script, `--section=${name}`)));
}

/** Passes the archive's rows as SQL to `taker`, at its pace. @throws the error that pg_restore reports */
async function takeRows(options: CustomOptions, taker: ScriptTaker): Promise<void> {
  const tool = startTool(toolRun(options, ...script, "--section=data"));
  try {
    await readScript(tool.output, taker);
  } catch (error) {
    if (!(error instanceof EndOfScript)) {
      tool.kill();
      throw error;
    }
    // If pg_restore failed too, it reports the cause.
    await tool.done;
    throw new InvalidInput("file", `${options.path} is truncated or damaged`, { cause: error });
  }
  await tool.done;
}

function toolRun({ path, pgRestore, env, signal }: CustomOptions, ...args: string[]) {
  return { tool: pgRestore, args, reads: path, env, signal };
}

async function load(options: CustomOptions, { tables }: Seal, sql: Runner): Promise<Map<string, number>> {
  const { path, progress } = options;
  progress?.({ doing: "creating tables" });
  await sql.unsafe(intoSchemas(withPath(await readSection(options, "pre-data"))));
  const counts = new Map<string, number>();
  const declared = new Map(tables.map((table) => [tableName(table), table]));
  let bytes = 0;
  await takeRows(options, {
    statements: async (text) => void (await sql.unsafe(withPath(text))),
    copy: async (statement, rows) => {
      const target = copiedTable(statement);
      const name = tableName(target);
      let left = declared.get(name)?.bytes ?? 0;
      const told = async function* () {
        for await (const piece of rows) {
          bytes += piece.length;
          left -= piece.length;
          if (left < 0)
            throw new InvalidInput(
              "file",
              `${path} holds more rows of ${plainName(target)} than it declares`,
            );
          progress?.({ doing: "restoring", table: plainName(target), bytes });
          yield piece;
        }
      };
      // The tables are not visible to others yet, so the rows can be written frozen and need no vacuum.
      const frozen = statement.replace(/;$/, " WITH (FREEZE)");
      counts.set(name, await copyIn(sql, frozen, told()));
    },
  });
  progress?.({ doing: "creating indexes" });
  await sql.unsafe(withPath(await readSection(options, "post-data")));
  return counts;
}

/**
 * pg_dump empties the path at the beginning of each script. A function that names a table without its schema, as one of a
 * revision may, would then fail when a constraint of the rows uses it.
 */
function withPath(script: string): string {
  return script.replace(
    "SELECT pg_catalog.set_config('search_path', '', false);",
    "SET search_path = public;",
  );
}

/** A schema that contains an extension survives when everything else is dropped. */
function intoSchemas(preData: string): string {
  return splitStatements(preData)
    .map(({ text }) => {
      const [create, schema, name = "", more] = wordsOf(text);
      const isSchema = create === "CREATE" && schema === "SCHEMA" && more === undefined;
      return isSchema
        ? `create schema if not exists ${name.startsWith('"') ? name : name.toLowerCase()}`
        : text;
    })
    .join(";\n");
}
