import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { StaticFile } from "./folder.ts";

const compressible =
  /^(text\/|image\/svg\+xml|application\/(json|manifest\+json|xml|wasm|.*\+(json|xml))|font\/(ttf|otf))/;
/** Below it, what is saved is less than a packet. */
const leastBytes = 1024;
/** Above it, a build had better compress it once. */
const mostBytes = 2 * 1024 * 1024;
const keptBytes = 32 * 1024 * 1024;

const compress = promisify(gzip);

/** Files that nobody compressed when they were built: by gzip, each once, as long as there is room for them. */
export class Compressed {
  /** By path and version; what was asked for the longest ago comes first. */
  readonly #kept = new Map<string, Uint8Array<ArrayBuffer>>();
  /** A hundred browsers that ask for the same file at once wait for one compression of it. */
  readonly #begun = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
  #bytes = 0;

  static worthwhile({ size }: StaticFile, type: string): boolean {
    return compressible.test(type) && size >= leastBytes && size <= mostBytes;
  }

  /** @param most bytes that are kept */
  constructor(private readonly most = keptBytes) {}

  async get(file: StaticFile): Promise<Uint8Array<ArrayBuffer>> {
    const key = `${file.changed} ${file.size} ${file.path}`;
    const kept = this.#kept.get(key);
    if (kept) {
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      return kept;
    }
    let begun = this.#begun.get(key);
    if (!begun) {
      begun = this.#make(key, file.path).finally(() => this.#begun.delete(key));
      this.#begun.set(key, begun);
    }
    return await begun;
  }

  get bytes(): number {
    return this.#bytes;
  }

  async #make(key: string, path: string): Promise<Uint8Array<ArrayBuffer>> {
    const content = await compress(await Bun.file(path).bytes());
    this.#kept.set(key, content);
    this.#bytes += content.length;
    for (const [oldest, { length }] of this.#kept) {
      if (this.#bytes <= this.most) break;
      this.#kept.delete(oldest);
      this.#bytes -= length;
    }
    return content;
  }
}

/** What a file is called that was compressed when the front end was built, by how; the smallest comes first. */
export const suffixes = { br: ".br", zstd: ".zst", gzip: ".gz" } as const;

export type Coding = keyof typeof suffixes;

const codings = Object.keys(suffixes) as Coding[];

/** The codings that `Accept-Encoding` allows (RFC 9110, 12.5.3), those with the highest weight first. */
export function acceptedCodings(header: string | null): Coding[] {
  const weights = new Map<string, number>();
  for (const entry of (header ?? "").toLowerCase().split(",")) {
    const [, name, weight = "1"] =
      entry.match(/^\s*([a-z0-9*-]+)\s*(?:;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?\s*$/) ?? [];
    if (name !== undefined) weights.set(name === "x-gzip" ? "gzip" : name, Number(weight));
  }
  const weightOf = (name: string) => weights.get(name) ?? weights.get("*") ?? 0;
  // No coding at all is as good as any other, unless it is given a weight of its own.
  const plain = weights.get("identity") ?? 0;
  return codings
    .filter((name) => weightOf(name) > 0 && weightOf(name) >= plain)
    .sort((a, b) => weightOf(b) - weightOf(a));
}
