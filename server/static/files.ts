// Our own, since @elysiajs/static (1.4.10) does not keep what docs/server.md promises: it neither compresses nor picks
// precompressed files, knows no If-Match or If-Range, follows links that lead out of the folder, and reads a whole file for
// its ETag.

import { basename } from "node:path";
import { isNamedByContent, isUnchanged, isUnwanted } from "./caching.ts";
import { acceptedCodings, type Coding, Compressed, suffixes } from "./compressed.ts";
import { filePath } from "./file_path.ts";
import type { Folder, StaticFile } from "./folder.ts";

const index = "index.html";

/** A front end is ours, so it may do what one commonly does with itself; it loads nothing from elsewhere. */
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

/** What is sent of a file: itself, what lies compressed beside it, or what we compress. */
interface Variant {
  body: Blob | Uint8Array<ArrayBuffer>;
  coding?: Coding;
  etag: string;
}

/** A file for a path, and the headers that it was found by. */
interface Found {
  file: StaticFile;
  vary: string;
}

/** Answers requests with the files of a folder. */
export class StaticFiles {
  readonly #compressed = new Compressed();

  constructor(private readonly folder: Folder) {}

  /** The answer to a GET or HEAD, if there is a file for it. */
  async answer(request: Request): Promise<Response | undefined> {
    const found = await this.#find(request);
    if (found !== "in a folder") return found && (await this.#send(found, request));
    const { pathname, search } = new URL(request.url);
    // Relative, since a proxy may serve us under a path of its own.
    const location = `${pathname.slice(pathname.lastIndexOf("/") + 1)}/${search}`;
    return new Response(null, { status: 308, headers: { location, "cache-control": "no-cache" } });
  }

  /** Whether a GET in the place of this request would have an answer. */
  async has(request: Request): Promise<boolean> {
    return (await this.#find(request)) !== undefined;
  }

  /**
   * Whoever navigates to what is no file gets the front end's index, whose router knows what to show: that is a browser's
   * Accept, and a path that ends in no file's extension.
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
      // One that is older was made of another version.
      if (beside && beside.modified >= file.modified) {
        return { body: Bun.file(beside.path), coding, etag: `"${versionOf(beside)}-${coding}"` };
      }
      // A part of a file is a part of what lies there.
      if (coding === "gzip" && Compressed.worthwhile(file, type) && !asked.has("range")) {
        const body = await this.#compressed.get(file);
        return { body, coding, etag: `W/"${versionOf(file)}-${coding}"` };
      }
    }
    return { body: Bun.file(file.path), etag: `"${versionOf(file)}"` };
  }
}

/** Stands for a body of which Elysia, to answer a HEAD, only adds up the lengths: a file itself would be read to its end. */
function ofLength(body: Variant["body"]): ReadableStream {
  const byteLength = body instanceof Blob ? body.size : body.length;
  return new ReadableStream({
    start(stream) {
      stream.enqueue({ byteLength });
      stream.close();
    },
  });
}

/** Bun answers a Range of what lies on the disk, and says then that it does; otherwise it tells what the file is called there. */
function ofDisk(asksForRange: boolean): Record<string, string> {
  const ranges: Record<string, string> = asksForRange ? {} : { "accept-ranges": "bytes" };
  return { ...ranges, "content-disposition": "inline" };
}

function versionOf({ changed, size }: StaticFile): string {
  return `${Math.round(changed).toString(36)}-${size.toString(36)}`;
}
