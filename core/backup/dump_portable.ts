import { Conflict } from "../errors.ts";
import type { Revision } from "../revision/read.ts";
import { splitStatements, wordsOf } from "../revision/statements.ts";
import { copyOut } from "./copy.ts";
import type { DumpWork } from "./dump.ts";
import { fold } from "../revision/sql_text.ts";
import { copyTarget, plainName, readSequences, type Table } from "./inventory.ts";
import { PortableWriter } from "./portable_writer.ts";

const tellEveryBytes = 1 << 20;

/**
 * Rows by COPY, one table after the other in one snapshot; the schema is the revisions' own.
 * @throws Conflict for what the revisions cannot bring back
 */
export async function dumpPortable(work: DumpWork): Promise<{ rows: number[]; bytes: number }> {
  const { snapshot, inventory, known, unfinished, progress } = work;
  const { tables, applied } = inventory;
  refuseUnfinished(applied);
  refuseStrangers(tables, applied, known);
  const [server] = await snapshot.unsafe("select current_setting('server_version') as version");
  await using writer = await PortableWriter.open(unfinished, {
    created_at: work.clock.now().toISOString(),
    release: work.release,
    server_version: server!.version,
    compression: "zstd",
    revisions: applied.map(({ id, checksum }) => ({ id, checksum })),
    tables,
    sequences: await readSequences(snapshot),
  });
  const rows: number[] = [];
  for (const [index, table] of tables.entries()) {
    const tell = () => progress?.({ doing: "dumping", table: plainName(table), bytes: writer.bytes });
    tell();
    let told = writer.bytes;
    const copy = await copyOut(snapshot, `copy ${copyTarget(table)} to stdout`);
    for await (const piece of copy) {
      if (!writer.add(index, piece)) await writer.drained;
      if (writer.bytes - told < tellEveryBytes) continue;
      told = writer.bytes;
      tell();
    }
    rows.push(await copy.count);
  }
  await writer.finish(rows);
  return { rows, bytes: writer.fileBytes };
}

function refuseUnfinished(applied: DumpWork["inventory"]["applied"]): void {
  const half = applied.find(({ state }) => state !== "applied");
  if (!half) return;
  throw new Conflict(`Revision ${half.id} was interrupted while ${half.state}: svc database upgrade ends it`);
}

/** A backup that could not be restored is worse than none: what no revision makes, no restore could make. */
function refuseStrangers(
  tables: readonly Table[],
  applied: readonly { id: string }[],
  known: readonly Revision[],
): void {
  const ids = new Set(applied.map(({ id }) => id));
  const ours = known.filter(({ id }) => ids.has(id));
  // A database of a newer release: which tables its revisions make is not known here.
  if (ours.length < ids.size) return;
  const made = tablesMadeBy(ours.map(({ up }) => up));
  const strangers = tables.filter((table) => !made.has(plainName(table)) && plainName(table) !== "revision");
  if (strangers.length === 0) return;
  throw new Conflict(
    `No revision makes ${strangers.map(plainName).join(", ")}, so the portable format cannot bring it back: move it to another database, or install PostgreSQL's client tools and dump with --format custom`,
  );
}

/** Every name that a table has ever had in these scripts, without the schema `public`. */
function tablesMadeBy(scripts: readonly string[]): Set<string> {
  const made = new Set<string>();
  for (const { text } of scripts.flatMap((script) => splitStatements(script))) {
    const words = wordsOf(text);
    const table = words.indexOf("TABLE");
    const conditional = words[table + 1] === "IF" && words[table + 2] === "NOT";
    // CREATE [UNLOGGED] TABLE [IF NOT EXISTS] name
    if (words[0] === "CREATE" && (table === 1 || table === 2))
      made.add(nameAt(words, table + (conditional ? 4 : 1)));
    // ALTER TABLE ... RENAME TO name
    const to = words.indexOf("TO");
    if (words[0] === "ALTER" && table === 1 && words[to - 1] === "RENAME") made.add(nameAt(words, to + 1));
  }
  return made;
}

/** The name that begins there, without the schema `public`. */
function nameAt(words: readonly string[], from: number): string {
  const parts = [fold(words[from])];
  for (let at = from; words[at + 1] === "."; at += 2) parts.push(fold(words[at + 2]));
  return parts.join(".").replace(/^public\./, "");
}
