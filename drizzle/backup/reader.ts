import { type FileHandle, open } from "node:fs/promises";
import { promisify } from "node:util";
import { type ZlibOptions, zstdDecompress } from "node:zlib";
import { InvalidInput } from "../../platform/errors.ts";
import {
  type BackupHeader,
  type BackupSummary,
  blockBytes,
  endMark,
  formatVersion,
  hashBytes,
  longestBlock,
  longestHeader,
} from "./format.ts";
import { areObjects, areTexts, parseJson } from "./shape.ts";

export interface BackupContent {
  header: BackupHeader;
  summary: BackupSummary;
}

/**
 * Reads a file to its end without decompressing it, and checks that it is complete.
 * @param told called after each block with the bytes read so far
 * @throws InvalidInput for a file that is truncated, damaged, of a newer format, or not a backup
 */
export async function verifyBackup(path: string, told?: (bytes: number) => void): Promise<BackupContent> {
  const handle = await open(path, "r");
  try {
    const reader = await Reader.open(path, handle);
    const header = await reader.header();
    for (;;) {
      const { table, content } = await reader.block();
      told?.(reader.position);
      if (table !== endMark) continue;
      const digest = reader.digest();
      const written = await reader.take(hashBytes);
      if (!digest.equals(written)) throw reader.damaged();
      if (reader.size !== reader.position) throw reader.damaged();
      const summary = parseJson<BackupSummary>(content);
      const whole = Number.isSafeInteger(summary?.bytes) && summary?.rows?.length === header.tables.length;
      return { header, summary: whole ? summary! : reader.refuse() };
    }
  } finally {
    await handle.close();
  }
}

/**
 * Yields the rows of a file that passed `verifyBackup`: each piece with the index of its table. Rejects a block that
 * would decompress to more than we write, and rows beyond what the file declares, before allocating memory for them.
 */
export async function* readRows(
  path: string,
  { header, summary }: BackupContent,
): AsyncGenerator<{ table: number; rows: Uint8Array }> {
  const handle = await open(path, "r");
  try {
    const reader = await Reader.open(path, handle);
    await reader.header();
    for (let left = summary.bytes; ;) {
      const { table, content } = await reader.block();
      if (table === endMark) return;
      const rows = await decompress(content, { maxOutputLength: blockBytes }).catch(() => reader.refuse());
      left -= rows.length;
      if (left < 0 || table >= header.tables.length) throw reader.damaged();
      yield { table, rows };
    }
  } finally {
    await handle.close();
  }
}

const decompress = promisify(zstdDecompress as Decompress);

type Decompress = (
  content: Buffer,
  options: ZlibOptions,
  done: (error: Error | null, rows: Buffer) => void,
) => void;

class Reader {
  position = 0;
  #version = formatVersion;
  readonly #hash = new Bun.CryptoHasher("sha256");

  private constructor(
    readonly path: string,
    readonly handle: FileHandle,
    readonly size: number,
  ) {}

  static async open(path: string, handle: FileHandle): Promise<Reader> {
    return new Reader(path, handle, (await handle.stat()).size);
  }

  async header(): Promise<BackupHeader> {
    let line = "";
    while (!line.endsWith("\n")) {
      line += (await this.take(1)).toString("latin1");
      if (line.length > 64) throw this.damaged();
    }
    const [, version, length] = /^SVC-BACKUP (\d+) (\d+)\n$/.exec(line) ?? [];
    if (Number(version) > formatVersion) {
      throw new InvalidInput("file", `${this.path} was made by a newer release of svc (format ${version})`);
    }
    this.#version = Number(version);
    if (length === undefined || Number(length) > longestHeader) throw this.damaged();
    const header = parseJson<BackupHeader>(await this.take(Number(length)));
    await this.take(1);
    const { revisions, tables, sequences } = header ?? {};
    const whole =
      areObjects(revisions, "id", "checksum") &&
      areObjects(tables, "schema", "name") &&
      areObjects(sequences, "schema", "name", "last_value") &&
      tables!.every(({ columns }) => areTexts(columns));
    return whole ? header! : this.refuse();
  }

  async block(): Promise<{ table: number; content: Buffer }> {
    if (this.#version > 1) await this.take(8);
    const head = await this.take(8);
    const [table, length] = [head.readUInt32BE(0), head.readUInt32BE(4)];
    if (length > (table === endMark ? longestHeader : longestBlock)) throw this.damaged();
    return { table, content: await this.take(length) };
  }

  async take(length: number): Promise<Buffer> {
    if (length > this.size - this.position) throw this.truncated();
    const buffer = Buffer.allocUnsafe(length);
    for (let at = 0; at < length;) {
      const { bytesRead } = await this.handle.read(buffer, at, length - at);
      if (bytesRead === 0) throw this.truncated();
      at += bytesRead;
    }
    this.position += length;
    this.#hash.update(buffer);
    return buffer;
  }

  digest(): Buffer {
    return this.#hash.copy().digest();
  }

  truncated(): InvalidInput {
    return new InvalidInput("file", `${this.path} is truncated: its end is missing`);
  }

  damaged(): InvalidInput {
    return new InvalidInput("file", `${this.path} is damaged: its content has changed since it was written`);
  }

  refuse(): never {
    throw this.damaged();
  }
}
