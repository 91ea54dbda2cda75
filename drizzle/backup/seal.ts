import { type FileHandle, open } from "node:fs/promises";
import { InvalidInput } from "../../platform/errors.ts";
import type { Extension, TableRows } from "./inventory.ts";
import { areObjects, areTexts, parseJson } from "./shape.ts";

/**
 * What svc appends to pg_dump's archive. pg_restore never reads that far, so the file stays an ordinary archive. But a
 * damaged table of contents, which pg_restore would follow without noticing, is detected, and so is an archive that
 * was not made by svc.
 *
 *     <pg_dump's archive>
 *     <content: JSON>
 *     SVC-SEAL 1 <bytes of the content: 8 digits> <SHA-256 of everything before these digits, hex>\n
 */
export interface Seal {
  created_at: string;
  /** The release of svc. */
  release: string;
  /** PostgreSQL's version, in its own notation. */
  server_version: string;
  revisions: { id: string; checksum: string }[];
  /** All schemas in the archive, including `public`. */
  schemas: string[];
  /** Installed in the database, but not part of the archive. */
  extensions: Extension[];
  /** With the size of their rows in COPY's format. */
  tables: (TableRows & { bytes: number })[];
}

const version = 1;
const start = "SVC-SEAL ";
const form = /^SVC-SEAL (\d+) (\d{8}) ([0-9a-f]{64})\n$/;
const hashDigits = 64;
/** The length of the last line. */
const lineBytes = start.length + 2 + 9 + hashDigits + 1;
const longestContent = 16 << 20;
const chunkBytes = 1 << 20;

export async function appendSeal(path: string, seal: Seal): Promise<void> {
  const handle = await open(path, "r+");
  try {
    const { size } = await handle.stat();
    const content = Buffer.from(JSON.stringify(seal));
    const line = `${start}${version} ${String(content.length).padStart(8, "0")} `;
    const before = Buffer.concat([content, Buffer.from(line)]);
    const hash = await hashOf(handle, size);
    hash.update(before);
    const end = Buffer.concat([before, Buffer.from(`${hash.digest("hex")}\n`)]);
    for (let at = 0; at < end.length;) {
      at += (await handle.write(end, at, end.length - at, size + at)).bytesWritten;
    }
  } finally {
    await handle.close();
  }
}

/**
 * Reads the seal of an archive after verifying every byte of the file against it.
 * @throws InvalidInput for a file without a seal, or one that does not match it
 */
export async function readSeal(path: string, told?: (bytes: number) => void): Promise<Seal> {
  const handle = await open(path, "r");
  try {
    const { size } = await handle.stat();
    const line = (await read(handle, Math.max(0, size - lineBytes), lineBytes)).toString("latin1");
    const [, format, length, digest] = form.exec(line) ?? [];
    if (format === undefined || Number(format) < version) throw unsealed(path);
    if (Number(format) > version)
      throw new InvalidInput("file", `${path} was made by a newer release of svc (seal ${format})`);
    const hash = await hashOf(handle, size - hashDigits - 1, told);
    const from = size - lineBytes - Number(length);
    if (hash.digest("hex") !== digest || from < 0 || Number(length) > longestContent) throw damaged(path);
    const seal = parseJson<Seal>(await read(handle, from, Number(length)));
    const whole =
      areObjects(seal?.revisions, "id", "checksum") &&
      areObjects(seal?.tables, "schema", "name") &&
      areObjects(seal?.extensions, "schema", "name") &&
      areTexts(seal?.schemas);
    if (!seal || !whole) throw damaged(path);
    return seal;
  } finally {
    await handle.close();
  }
}

async function hashOf(handle: FileHandle, size: number, told?: (bytes: number) => void) {
  const hash = new Bun.CryptoHasher("sha256");
  for (let at = 0; at < size;) {
    const chunk = await read(handle, at, Math.min(chunkBytes, size - at));
    if (chunk.length === 0) break;
    hash.update(chunk);
    at += chunk.length;
    told?.(at);
  }
  return hash;
}

async function read(handle: FileHandle, from: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, from);
  return buffer.subarray(0, bytesRead);
}

function damaged(path: string): InvalidInput {
  return new InvalidInput("file", `${path} is damaged: its content has changed since it was written`);
}

function unsealed(path: string): InvalidInput {
  return new InvalidInput(
    "file",
    `${path} does not end with the seal of svc database dump: it is truncated, or pg_dump alone or an earlier release made it. To use such a dump, load it with pg_restore into an empty database and dump that (docs/database.md, "Backups")`,
  );
}
