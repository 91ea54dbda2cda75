import { type FileHandle, open } from "node:fs/promises";
import {
  type BackupHeader,
  type BackupSummary,
  blockBytes,
  endMark,
  formatVersion,
  hashBytes,
  magic,
  skippableMagic,
} from "./format.ts";

const newline = Buffer.from("\n");

/** Writes a backup into an existing, empty file. */
export class BackupWriter implements AsyncDisposable {
  readonly #hash = new Bun.CryptoHasher("sha256");
  readonly #handle: FileHandle;
  #block = Buffer.allocUnsafe(blockBytes);
  #used = 0;
  #table = 0;
  #bytes = 0;
  #fileBytes = 0;
  /** Full blocks that are not yet written. */
  #waiting = 0;
  #written: Promise<void> = Promise.resolve();

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  static async open(path: string, header: BackupHeader): Promise<BackupWriter> {
    const writer = new BackupWriter(await open(path, "r+"));
    const json = Buffer.from(JSON.stringify(header));
    await writer.#write(
      Buffer.concat([Buffer.from(`${magic}${formatVersion} ${json.length}\n`), json, newline]),
    );
    return writer;
  }

  /** The size of the rows so far, before compression. */
  get bytes(): number {
    return this.#bytes + this.#used;
  }

  /** The size of the file so far. */
  get fileBytes(): number {
    return this.#fileBytes;
  }

  /** Settles when all full blocks are in the file. @throws the file system's error */
  get drained(): Promise<void> {
    return this.#written;
  }

  /** Adds rows of a table. @returns false when the caller should wait for `drained` */
  add(table: number, rows: Uint8Array): boolean {
    if (table !== this.#table) this.#flush();
    this.#table = table;
    for (let at = 0; at < rows.length;) {
      const part = rows.subarray(at, at + blockBytes - this.#used);
      this.#block.set(part, this.#used);
      this.#used += part.length;
      at += part.length;
      if (this.#used === blockBytes) this.#flush();
    }
    // One block is compressed while the next one fills.
    return this.#waiting <= 1;
  }

  async finish(rows: number[]): Promise<void> {
    this.#flush();
    await this.#written;
    const json = Buffer.from(JSON.stringify({ rows, bytes: this.#bytes } satisfies BackupSummary));
    await this.#write(Buffer.concat([blockHead(endMark, json.length), json]));
    await this.#write(this.#hash.digest());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#written.catch(() => {});
    await this.#handle.close();
  }

  #flush(): void {
    if (this.#used === 0) return;
    const [table, rows] = [this.#table, this.#block.subarray(0, this.#used)];
    this.#bytes += this.#used;
    this.#block = Buffer.allocUnsafe(blockBytes);
    this.#used = 0;
    this.#waiting += 1;
    this.#written = this.#written.then(() => this.#append(table, rows));
    // A caller of `drained` receives the error; until then it must not count as unhandled.
    this.#written.catch(() => {});
  }

  async #append(table: number, rows: Uint8Array): Promise<void> {
    // Runs on another thread. Level 1, so that compression is not slower than the server.
    const frame = await Bun.zstdCompress(rows, { level: 1 });
    await this.#write(Buffer.concat([blockHead(table, frame.length), frame]));
    this.#waiting -= 1;
  }

  async #write(bytes: Buffer): Promise<void> {
    this.#hash.update(bytes);
    for (let at = 0; at < bytes.length;) {
      at += (await this.#handle.write(bytes, at, bytes.length - at)).bytesWritten;
    }
    this.#fileBytes += bytes.length;
  }
}

function blockHead(table: number, length: number): Buffer {
  const head = Buffer.allocUnsafe(16);
  head.writeUInt32LE(skippableMagic, 0);
  // zstd skips only the head of a block, but all of the end.
  head.writeUInt32LE(table === endMark ? 8 + length + hashBytes : 8, 4);
  head.writeUInt32BE(table, 8);
  head.writeUInt32BE(length, 12);
  return head;
}
