import { Conflict, Unavailable } from "../../platform/errors.ts";
import type { Revision } from "../revision/history.ts";
import { copyOut, countLines } from "./copy.ts";
import type { DumpWork } from "./dump.ts";
import { tablesOf } from "./identity.ts";
import { copyTarget, plainName, readSequences, type Table, tableName } from "./inventory.ts";
import { readPortable, verifyPortable } from "./portable_reader.ts";
import { PortableWriter } from "./portable_writer.ts";
import { endsTransaction } from "./restore_portable.ts";

const tellEveryBytes = 1 << 20;

/**
 * Dumps rows with COPY, one table after another in one snapshot; the schema comes from the revisions. Then reads the
 * whole file as `restore` does.
 *
 * @throws Conflict for objects that the revisions do not create
 */
export async function dumpPortable(work: DumpWork): Promise<{ rows: number[]; bytes: number }> {
  const { inventory, known, unfinished, progress } = work;
  const { tables, applied } = inventory;
  refuseUnfinished(applied);
  const ids = new Set(applied.map(({ id }) => id));
  const ours = known.filter(({ id }) => ids.has(id));
  // In a database of a newer release, the SQL of some revisions is unknown here.
  if (ours.length === ids.size) {
    refuseStrangers(tables, ours);
    refuseCommits(ours);
  }
  const written = await writeRows(work);
  const content = await verifyPortable(unfinished, (bytes) => progress?.({ doing: "checking", bytes }));
  const found = tables.map(() => 0);
  for await (const { table, rows } of readPortable(unfinished, content)) found[table]! += countLines(rows);
  const wrong = tables.filter((_, index) => found[index] !== written.rows[index]);
  if (wrong.length > 0) {
    throw new Unavailable(
      `The file does not hold the rows of ${wrong.map(plainName).join(", ")}: nothing was written`,
    );
  }
  return written;
}

async function writeRows(work: DumpWork): Promise<{ rows: number[]; bytes: number }> {
  const { snapshot, inventory, unfinished, progress } = work;
  const { tables, applied } = inventory;
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
  throw new Conflict(
    `Revision ${half.id} was interrupted while ${half.state}: run svc database upgrade to finish it`,
  );
}

/**
 * A restore could not recreate objects that no revision creates, and a backup that cannot be restored is worse than
 * none.
 */
function refuseStrangers(tables: readonly Table[], revisions: readonly Revision[]): void {
  const { ever } = tablesOf(revisions);
  const strangers = tables.filter((table) => !ever.has(tableName(table)));
  if (strangers.length === 0) return;
  throw new Conflict(
    `No revision creates ${strangers.map(plainName).join(", ")}, so the portable format cannot restore it: move it to another database, or install PostgreSQL's client tools and dump with --format custom`,
  );
}

/** A restore creates the tables and loads the rows in one transaction. */
function refuseCommits(revisions: readonly Revision[]): void {
  const found = revisions.find(({ up }) => endsTransaction(up));
  if (!found) return;
  throw new Conflict(
    `Revision ${found.id} commits in a DO block, so the portable format cannot restore it: install PostgreSQL's client tools and dump with --format custom`,
  );
}
