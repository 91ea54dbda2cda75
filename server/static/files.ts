// A custom implementation, because @elysiajs/static (1.4.10) does not do what docs/server.md promises: it neither
// compresses nor serves precompressed files, ignores If-Match and If-Range, follows links out of the folder, and reads
// a whole file for its ETag.

import { basename } from "node:path";
import { isNamedByContent, isUnchanged, isUnwanted } from "./caching.ts";
import { acceptedCodings, type Coding, Compressed, suffixes } from "./compressed.ts";
import { filePath } from "./file_path.ts";
import type { Folder, StaticFile } from "./folder.ts";

const index = "index.html";

/** A front end is ours, so its own scripts and styles are allowed; it loads nothing from elsewhere. */
const policy = [
  "default-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "object-src 'none'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

/** The representation of a file to send: the file itself, a precompressed one next to it, or our own compression. */
interface Variant {
  body: Blob | Uint8Array<ArrayBuffer>;
  coding?: Coding;
  etag: string;
}

/** The file for a path, and the request headers that the choice depends on. */
interface Found {
  file: StaticFile;
  vary: string;
}

/** Serves the files of a folder. */
export class StaticFiles {
  readonly #compressed = new Compressed();

  constructor(private readonly folder: Folder) {}

  /** Answers a GET or HEAD, if there is a file for it. */
  async answer(request: Request): Promise<Response | undefined> {
    const found = await this.#find(request);
    if (found !== "in a folder") return found && (await this.#send(found, request));
    const { pathname, search } = new URL(request.url);
    const name = pathname.slice(pathname.lastIndexOf("/") + 1);
    // Relative, because a proxy may serve us under a path prefix. A colon would end a scheme (RFC 3986, 4.2).
    const location = `${name.includes(":") ? "./" : ""}${name}/${search}`;
    return new Response(null, { status: 308, headers: { location, "cache-control": "no-cache" } });
  }

  /** Whether a GET of this path would have an answer. */
  async has(request: Request): Promise<boolean> {
    return (await this.#find(request)) !== undefined;
  }

  /**
   * Finds the file of a path. Navigation to a path without a file gets the front end's index, whose router decides what
   * to show: navigation means a browser's Accept header and a path without a file extension.
   */
  async #find({ url, headers }: Request): Promise<Found | "in a folder" | undefined> {
    const path = filePath(new URL(url).pathname);
    if (path === undefined) return undefined;
    const named = path === "" || path.endsWith("/") ? path + index : path;
    const file = await this.folder.file(named);
    if (file) return { file, vary: "accept-encoding" };
    if (!path.endsWith("/") && (await this.folder.file(`${path}/${index}`))) return "in a folder";
    const navigates = /\btext\/html\b/i.test(headers.get("accept") ?? "") && !basename(path).includes(".");
    const home = navigates ? await this.folder.file(index) : undefined;
    return home && { file: home, vary: "accept, accept-encoding" };
  }

  async #send({ file, vary }: Found, { method, headers: asked }: Request): Promise<Response> {
    const { type } = Bun.file(file.path);
    const { body, coding, etag } = await this.#variant(file, type, asked);
    const headers: Record<string, string> = {
      "content-type": type,
      "cache-control": isNamedByContent(file.name) ? "public, max-age=31536000, immutable" : "no-cache",
      etag,
      "last-modified": file.modified.toUTCString(),
      vary,
      "content-security-policy": policy,
      "referrer-policy": "strict-origin-when-cross-origin",
      ...(coding === undefined ? {} : { "content-encoding": coding }),
      ...(body instanceof Blob ? ofDisk(method !== "HEAD" && asked.has("range")) : {}),
    };
    if (isUnwanted(asked, etag, file.modified)) return new Response(null, { status: 412 });
    if (isUnchanged(asked, etag, file.modified)) {
      const { "content-type": _, "content-encoding": _coding, ...kept } = headers;
      return new Response(null, { status: 304, headers: kept });
    }
    return new Response(method === "HEAD" ? ofLength(body) : body, { headers });
  }

  async #variant(file: StaticFile, type: string, asked: Headers): Promise<Variant> {
    for (const coding of acceptedCodings(asked.get("accept-encoding"))) {
      const beside = await this.folder.file(file.name + suffixes[coding]);
      // An older one was built from another version.
      if (beside && beside.modified >= file.modified) {
        return { body: Bun.file(beside.path), coding, etag: `"${versionOf(beside)}-${coding}"` };
      }
      // A range refers to the stored bytes.
      if (coding === "gzip" && Compressed.worthwhile(file, type) && !asked.has("range")) {
        const body = await this.#compressed.get(file);
        return { body, coding, etag: `W/"${versionOf(file)}-${coding}"` };
      }
    }
    return { body: Bun.file(file.path), etag: `"${versionOf(file)}"` };
  }
}

/** A stand-in body for HEAD, of which Elysia only sums up the lengths: it would read a file to its end. */
function ofLength(body: Variant["body"]): ReadableStream {
  const byteLength = body instanceof Blob ? body.size : body.length;
  return new ReadableStream({
    start(stream) {
      stream.enqueue({ byteLength });
      stream.close();
    },
  });
}

/** Bun adds Accept-Ranges itself when it answers a Range of a file on disk, and otherwise reveals the name on disk. */
function ofDisk(asksForRange: boolean): Record<string, string> {
  const ranges: Record<string, string> = asksForRange ? {} : { "accept-ranges": "bytes" };
  return { ...ranges, "content-disposition": "inline" };
}

function versionOf({ changed, size }: StaticFile): string {
  return `${Math.round(changed).toString(36)}-${size.toString(36)}`;
}
