import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { StaticFile } from "./folder.ts";

const compressible =
  /^(text\/|image\/svg\+xml|application\/(json|manifest\+json|xml|wasm|.*\+(json|xml))|font\/(ttf|otf))/;
/** Below this, compression saves less than a packet. */
const leastBytes = 1024;
/** Larger files should be compressed once by the build. */
const mostBytes = 2 * 1024 * 1024;
const cacheBytes = 32 * 1024 * 1024;

const compress = promisify(gzip);

/** Compresses files that the build did not: with gzip, each once, within a memory limit. */
export class Compressed {
  /** By path and version; the least recently used comes first. */
  readonly #cached = new Map<string, Uint8Array<ArrayBuffer>>();
  /** A hundred browsers that request the same file concurrently share one compression. */
  readonly #pending = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
  #bytes = 0;

  static worthwhile({ size }: StaticFile, type: string): boolean {
    return compressible.test(type) && size >= leastBytes && size <= mostBytes;
  }

  /** @param most the number of bytes to cache */
  constructor(private readonly most = cacheBytes) {}

  async get(file: StaticFile): Promise<Uint8Array<ArrayBuffer>> {
    const key = `${file.changed} ${file.size} ${file.path}`;
    const cached = this.#cached.get(key);
    if (cached) {
      this.#cached.delete(key);
      this.#cached.set(key, cached);
      return cached;
    }
    let pending = this.#pending.get(key);
    if (!pending) {
      pending = this.#make(key, file.path).finally(() => this.#pending.delete(key));
      this.#pending.set(key, pending);
    }
    return await pending;
  }

  get bytes(): number {
    return this.#bytes;
  }

  async #make(key: string, path: string): Promise<Uint8Array<ArrayBuffer>> {
    const content = await compress(await Bun.file(path).bytes());
    this.#cached.set(key, content);
    this.#bytes += content.length;
    for (const [oldest, { length }] of this.#cached) {
      if (this.#bytes <= this.most) break;
      this.#cached.delete(oldest);
      this.#bytes -= length;
    }
    return content;
  }
}

/** The suffixes of files that the build compressed, by coding; the smallest comes first. */
export const suffixes = { br: ".br", zstd: ".zst", gzip: ".gz" } as const;

export type Coding = keyof typeof suffixes;

const codings = Object.keys(suffixes) as Coding[];

/** The codings that `Accept-Encoding` allows (RFC 9110, 12.5.3), highest weight first. */
export function acceptedCodings(header: string | null): Coding[] {
  const weights = new Map<string, number>();
  for (const entry of (header ?? "").toLowerCase().split(",")) {
    // Trimmed first: white space at two places of the pattern would take quadratic time.
    const [, name, weight = "1"] =
      entry.trim().match(/^([a-z0-9*-]+)(?:\s*;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/) ?? [];
    if (name !== undefined) weights.set(name === "x-gzip" ? "gzip" : name, Number(weight));
  }
  const weightOf = (name: string) => weights.get(name) ?? weights.get("*") ?? 0;
  // Without a weight of its own, identity is as good as any other coding.
  const plain = weights.get("identity") ?? 0;
  return codings
    .filter((name) => weightOf(name) > 0 && weightOf(name) >= plain)
    .sort((a, b) => weightOf(b) - weightOf(a));
}
