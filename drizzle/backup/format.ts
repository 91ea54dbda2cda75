import type { Sequence, Table } from "./inventory.ts";

/**
 * The format of a backup: the rows of every table as COPY's text, and which revisions make the tables.
 * `head -2 svc-backup.dump` prints the header. Everything after it is zstd: `tail -n +3 svc-backup.dump | zstd -dc` prints
 * the rows of all tables, in the order of the header.
 *
 *     SVC-BACKUP 2 <bytes of the header>\n
 *     <header: JSON>\n
 *     <block>*        8 bytes: start of a skippable frame; 4 bytes: index of the table in the header; 4 bytes: length; a zstd frame of
 *                     rows. The rows of a table follow each other; a row may go on in the next block
 *     <end>           8 bytes: start of a skippable frame; 4 bytes FF; 4 bytes: length; summary: JSON
 *     <SHA-256>       32 bytes, of everything before
 *
 * Numbers are big-endian, except those of zstd. Format 1 lacks the starts of skippable frames. A change of the format must increment `formatVersion` and keep reading older versions.
 */
export const formatVersion = 2;
/** The first bytes of a backup. */
export const magic = "SVC-BACKUP ";

export interface BackupHeader {
  created_at: string;
  /** The release of svc. */
  release: string;
  /** PostgreSQL's version, in its own notation. */
  server_version: string;
  compression: "zstd";
  revisions: { id: string; checksum: string }[];
  tables: Table[];
  sequences: Sequence[];
}

export interface BackupSummary {
  /** One count per table in the header. */
  rows: number[];
  /** The size of all rows, before compression. */
  bytes: number;
}

/** Replaces the table index before the summary. */
export const endMark = 0xffffffff;
export const hashBytes = 32;
/** Starts a frame that zstd skips (RFC 8878, 3.1.2); its length follows. Both are little-endian. */
export const skippableMagic = 0x184d2a50;
/**
 * The size of a frame's rows, before compression: large enough to compress well, small enough to hold several in
 * memory.
 */
export const blockBytes = 1 << 20;
/** None of our frames is longer, so a damaged length cannot cause a huge allocation. */
export const longestBlock = 2 * blockBytes;
export const longestHeader = 16 << 20;
