import http from "node:http";
import { longestContent } from "../../core/incident/document/content.ts";
import { readAtMost } from "../../platform/bounded_body.ts";

// Limits of a request's size. Bun would refuse larger requests with a bare status, so its own limits are far higher.
// What it accepts beyond ours is never stored: an unread body is discarded as it arrives.

/** Of any body except a text's. */
export const largestBytes = 1024 * 1024;
/** Of a form of our pages. */
export const largestFormBytes = 4096;
/** Of a logout token, which may have a long signature. */
export const largestLogoutBytes = 8192;
/** The longest text with every character written as `\u0041`, plus the JSON around it. */
export const largestTextBytes = longestContent * 6 + 64 * 1024;
export const textRoute = "/documents/:document_id/content";

/** The request line and all headers. */
const largestHeadBytes = 16 * 1024;
/** Beyond this, Bun answers. It reserves this much for each connection with incomplete headers. */
const largestHeadBytesOfBun = 64 * 1024;

/** Passed to `Bun.serve`. */
export const maxRequestBodySize = Number.MAX_SAFE_INTEGER;

/** Makes servers that this process starts later accept oversized heads, so that we can answer them. */
export function acceptLargeHeads(): void {
  // Node's types call it read-only; in Bun it is the setting.
  Object.assign(http, { maxHeaderSize: largestHeadBytesOfBun });
}

/** Whether the request line and headers exceed our limit. */
export function isHeadTooLarge({ method, url, headers }: Request): boolean {
  let bytes = method.length + url.length;
  // Each with a colon, a space and a line break.
  headers.forEach((value, name) => {
    bytes += name.length + value.length + 4;
  });
  return bytes > largestHeadBytes;
}

/** The body is larger than the route accepts. The rest is unread, so the answer must end the connection. */
export class BodyTooLarge extends Error {
  constructor(largest: number) {
    const size = largest === largestBytes ? "1 MiB" : `${largest.toLocaleString("en")} bytes`;
    super(`The body is larger than ${size}`);
  }
}

/** @throws BodyTooLarge if the headers declare more than `largest` bytes */
export function refuseLongBody({ headers }: Request, largest: number): void {
  if (Number(headers.get("content-length") ?? 0) > largest) throw new BodyTooLarge(largest);
}

/**
 * Reads at most `largest` bytes of a body.
 * @throws BodyTooLarge
 */
export async function readBody(request: Request, largest: number): Promise<Uint8Array> {
  refuseLongBody(request, largest);
  if (request.headers.has("content-length")) return await request.bytes();
  const bytes = await readAtMost(request, largest);
  if (!bytes) throw new BodyTooLarge(largest);
  return bytes;
}
