import { constants, crc32, deflateRawSync } from "node:zlib";

// A page that several readers get consists of pieces that are compressed once, and of what each of them gets in between.
// Together they are one gzip file (RFC 1952): a block of DEFLATE that ends with a flush may be followed by any other.

/** A part of many pages. */
export interface Piece {
  text: string;
  bytes: Uint8Array;
  deflated: Uint8Array;
}

export function pieceOf(text: string): Piece {
  const bytes = Buffer.from(text);
  return { text, bytes, deflated: deflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }) };
}

/** Makes a file of pieces, and of texts of up to 64 kB that are stored as they are: compressing them would take longest. */
export function gzipOf(parts: readonly (Piece | string)[]): Uint8Array<ArrayBuffer> {
  const blocks: Uint8Array[] = [new Uint8Array([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])];
  let [sum, length] = [0, 0];
  for (const part of parts) {
    const bytes = typeof part === "string" ? Buffer.from(part) : part.bytes;
    if (typeof part !== "string") blocks.push(part.deflated);
    else {
      const header = new Uint8Array(5);
      new DataView(header.buffer).setUint16(1, bytes.length, true);
      new DataView(header.buffer).setUint16(3, ~bytes.length, true);
      blocks.push(header, bytes);
    }
    sum = crc32(bytes, sum);
    length += bytes.length;
  }
  const end = new Uint8Array(10);
  // An empty block that is the last one.
  end[0] = 3;
  new DataView(end.buffer).setUint32(2, sum, true);
  new DataView(end.buffer).setUint32(6, length, true);
  return new Uint8Array(Buffer.concat([...blocks, end]));
}
