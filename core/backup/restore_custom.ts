import type { Environment } from "../config.ts";
import { InvalidInput } from "../errors.ts";
import { copyIn } from "./copy.ts";
import { fold } from "../revision/sql_text.ts";
import { plainName, type Runner } from "./inventory.ts";
import type { OnProgress } from "./progress.ts";
import type { OpenBackup } from "./restore.ts";
import { EndOfScript, readScript, type ScriptTaker, withoutPsql } from "./script.ts";
import { runTool, startTool } from "./tool_process.ts";
import type { Tool } from "./tools.ts";

export interface CustomOptions {
  path: string;
  pgRestore: Tool;
  env: Environment;
  signal?: AbortSignal;
  progress?: OnProgress;
}

const script = ["--file=-", "--no-owner", "--no-acl", "--exit-on-error"];

/**
 * An archive of pg_dump. pg_restore turns it into SQL, which goes over our own connection: so what was there before is
 * removed, the backup loaded and its rows counted in one transaction (what `--single-transaction --exit-on-error` is
 * for cannot include the first and the last of these), and the password leaves this process for no other.
 *
 * @throws InvalidInput for an archive that pg_restore cannot read, or that is not of svc
 */
export async function openCustom(options: CustomOptions): Promise<OpenBackup> {
  const { path } = options;
  const contents = await runTool(toolRun(options, "--list"));
  const entries = (kind: string) =>
    [...contents.matchAll(new RegExp(`^\\d+; \\d+ \\d+ ${kind} (\\S+) (.+) \\S+$`, "gm"))].map(
      ([, schema, name]) => ({ schema: schema!, name: name! }),
    );
  const tables = entries("TABLE DATA").map((table) => ({ ...table, columns: [] }));
  if (!tables.some((table) => plainName(table) === "revision")) {
    throw new InvalidInput(
      "file",
      `${path} is a backup of PostgreSQL, but not of svc: it has no table revision`,
    );
  }
  return {
    format: "custom",
    revisions: await readRevisions(options),
    schemas: entries("SCHEMA").map(({ name }) => name),
    tables,
    load: (sql) => load(options, sql),
  };
}

/** The ids and checksums that the archive's table `revision` holds. */
async function readRevisions(options: CustomOptions): Promise<OpenBackup["revisions"]> {
  const revisions: OpenBackup["revisions"] = [];
  await takeScript(options, ["--data-only", "--schema=public", "--table=revision"], {
    statements: async () => {},
    copy: async (statement, rows) => {
      const columns = (/\((.*)\)/.exec(statement)?.[1] ?? "").split(", ");
      const text = Buffer.concat(await Array.fromAsync(rows)).toString();
      for (const row of text.split("\n").slice(0, -1)) {
        const values = row.split("\t");
        const value = (column: string) => values[columns.indexOf(column)] ?? "";
        revisions.push({ id: value("id"), checksum: value("checksum") });
      }
    },
  });
  return revisions;
}

/** Lets `taker` have a part of the archive as SQL, as fast as it takes it. @throws what pg_restore found wrong */
async function takeScript(
  options: CustomOptions,
  part: readonly string[],
  taker: ScriptTaker,
): Promise<void> {
  const tool = startTool(toolRun(options, ...script, ...part));
  try {
    await readScript(tool.output, taker);
  } catch (error) {
    if (!(error instanceof EndOfScript)) {
      tool.kill();
      throw error;
    }
    // What we saw is what came of something that it has a word for.
    await tool.done;
    throw new InvalidInput("file", `${options.path} is truncated or damaged`, { cause: error });
  }
  await tool.done;
}

/** The table's plain name, from `COPY schema.table (columns) FROM stdin;`. */
function tableOf(statement: string): string {
  const [, schema, name] = /^COPY ("(?:[^"]|"")+"|[^".]+)\.("(?:[^"]|"")+"|\S+) /.exec(statement) ?? [];
  return plainName({ schema: fold(schema), name: fold(name) });
}

function toolRun({ path, pgRestore, env, signal }: CustomOptions, ...args: string[]) {
  return { tool: pgRestore, args, reads: path, env, signal };
}

async function load(options: CustomOptions, sql: Runner): Promise<Map<string, number>> {
  const { progress } = options;
  const section = async (name: string) => {
    await sql.unsafe(withoutPsql(await runTool(toolRun(options, ...script, `--section=${name}`))));
  };
  progress?.({ doing: "making the tables" });
  await section("pre-data");
  const counts = new Map<string, number>();
  let bytes = 0;
  await takeScript(options, ["--section=data"], {
    statements: async (text) => void (await sql.unsafe(text)),
    copy: async (statement, rows) => {
      const table = tableOf(statement);
      const told = async function* () {
        for await (const piece of rows) {
          bytes += piece.length;
          progress?.({ doing: "restoring", table, bytes });
          yield piece;
        }
      };
      // Into tables that nobody has seen yet, so rows can be written as old ones, which nobody has to touch again.
      const frozen = statement.replace(/;$/, " WITH (FREEZE)");
      counts.set(table, await copyIn(sql, frozen, told()));
    },
  });
  progress?.({ doing: "making indexes" });
  await section("post-data");
  return counts;
}
