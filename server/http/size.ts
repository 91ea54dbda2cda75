import http from "node:http";
import { longestContent } from "../../core/incident/document/content.ts";

// How large a request may be. Bun would refuse what is larger with a status and nothing else, so its own limits are far
// higher, and what it accepts beyond ours is never kept: a body that nobody reads is thrown away as it comes.

/** Of any body but that of a text. */
export const largestBytes = 1024 * 1024;
/** A text of the longest, all of it written as `\u0041`; and what stands around it. */
export const largestTextBytes = longestContent * 6 + 64 * 1024;
export const textRoute = "/documents/:document_id/content";

/** Of the request line and all headers. */
const largestHeadBytes = 16 * 1024;
/** Beyond it, Bun answers. It keeps as much for each connection whose headers have not all come. */
const largestHeadBytesOfBun = 64 * 1024;

/** For `Bun.serve`. */
export const maxRequestBodySize = Number.MAX_SAFE_INTEGER;

/** Has each server that this process starts from now on take heads that are too large, so that we can say so. */
export function acceptLargeHeads(): void {
  // Node's types say that it is only read; in Bun it is the setting.
  Object.assign(http, { maxHeaderSize: largestHeadBytesOfBun });
}

/** Whether the request line and headers are larger than we take. */
export function isHeadTooLarge({ method, url, headers }: Request): boolean {
  let bytes = method.length + url.length;
  // Each with a colon, a blank and a line break.
  headers.forEach((value, name) => {
    bytes += name.length + value.length + 4;
  });
  return bytes > largestHeadBytes;
}

/** Larger than the route takes. The rest has not been read, so the answer has to end the connection. */
export class BodyTooLarge extends Error {
  constructor(largest: number) {
    const size = largest === largestBytes ? "1 MiB" : `${largest.toLocaleString("en")} bytes`;
    super(`The body is larger than ${size}`);
  }
}

/** Reads a body, and no more of it than `largest` bytes. @throws BodyTooLarge */
export async function readBody(request: Request, largest: number): Promise<Uint8Array> {
  const length = request.headers.get("content-length");
  if (length !== null) {
    if (Number(length) > largest) throw new BodyTooLarge(largest);
    return await request.bytes();
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.length;
    if (bytes > largest) throw new BodyTooLarge(largest);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
