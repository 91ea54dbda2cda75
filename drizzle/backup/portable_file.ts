import type { Sequence, Table } from "./inventory.ts";

/**
 * The portable format, for a machine without PostgreSQL's tools: the rows of every table as COPY's text, and which
 * revisions make the tables. `head -2 svc-backup.dump` shows what it is.
 *
 *     SVC-BACKUP 1 <bytes of the header>\n
 *     <header: JSON>\n
 *     <block>*        4 bytes: index of the table in the header; 4 bytes: length; a zstd frame of rows. The rows of a
 *                     table follow each other; a row may go on in the next block
 *     <end>           4 bytes FF; 4 bytes: length; summary: JSON
 *     <SHA-256>       32 bytes, of everything before
 *
 * Numbers are big-endian. Whoever changes the format counts `formatVersion` up and goes on reading the older ones.
 */
export const formatVersion = 1;
export const magic = "SVC-BACKUP ";

/** What the first bytes of a file must be to be called portable. */
export const portableMagic = Buffer.from(magic);

export interface PortableHeader {
  created_at: string;
  /** Of svc. */
  release: string;
  /** Of PostgreSQL, as it writes it. */
  server_version: string;
  compression: "zstd";
  revisions: { id: string; checksum: string }[];
  tables: Table[];
  sequences: Sequence[];
}

export interface PortableSummary {
  /** Of each table of the header. */
  rows: number[];
  /** Of all rows, before compression. */
  bytes: number;
}

/** In place of a table: what follows is the summary. */
export const endMark = 0xffffffff;
export const hashBytes = 32;
/** Rows of one frame, before compression: large enough to compress well, small enough to have several at hand. */
export const blockBytes = 1 << 20;
/** No frame of ours is longer, so that a damaged length is not taken for an order of memory. */
export const longestBlock = 2 * blockBytes;
export const longestHeader = 16 << 20;
