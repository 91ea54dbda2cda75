import { beforeAll, expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { TestClock } from "../../tests/support/clock.ts";
import { createHostile, hostileRevisions, temporaryDirectory } from "../../tests/support/database/backup.ts";
import { type DebianServer, debianServer } from "../../tests/support/database/debian_postgres.ts";
import { dump, type Format } from "./dump.ts";
import { readPortable, verifyPortable } from "./portable_reader.ts";
import { formatOf } from "./restore.ts";
import { readSeal } from "./seal.ts";

let debian: DebianServer;
beforeAll(async () => {
  debian = await debianServer();
});

async function dumped(path: string, format: Format): Promise<Buffer> {
  await using database = await createHostile(debian.url);
  const { url } = database;
  const common = { env: { PATH: debian.tools }, tools: () => [], revisions: hostileRevisions };
  await dump({ ...common, url, path, format, release: "1", clock: new TestClock() });
  return readFile(path);
}

/** The first step of `restore`. */
async function opened(path: string): Promise<{ detail?: string }> {
  await ((await formatOf(path)) === "custom" ? readSeal(path) : verifyPortable(path));
  return {};
}

test.each(["custom", "portable"] as const)(
  "%s: a file with a single flipped bit is refused, wherever the bit is",
  async (format) => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, "backup");
    const bytes = await dumped(path, format);
    await opened(path);
    // Every bit of the first and last bytes (header, seal), and a sample of bits in between.
    const edges = 120;
    const step = Math.floor(bytes.length / 500);
    const places: [at: number, bit: number][] = [];
    for (let at = 0; at < bytes.length; at += at < edges || at >= bytes.length - edges ? 1 : step) {
      const all = at < edges || at >= bytes.length - edges;
      for (const bit of all ? [0, 1, 2, 3, 4, 5, 6, 7] : [at % 8]) places.push([at, bit]);
    }
    for (let at = bytes.length - edges; at < bytes.length; at += 1) places.push([at, at % 8]);
    expect(places.length).toBeGreaterThan(1000);
    for (const [at, bit] of places) {
      bytes[at]! ^= 1 << bit;
      await writeFile(path, bytes);
      const { detail } = await opened(path).catch((error) => error);
      expect({ at, bit, detail }).toEqual({ at, bit, detail: expect.any(String) });
      bytes[at]! ^= 1 << bit;
    }
    await writeFile(path, bytes);
    await opened(path);
  },
);

test("pg_restore accepts a sealed archive, from a file and from a pipe", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "backup");
  await dumped(path, "custom");
  const tool = join(debian.tools, "pg_restore");
  const read = (args: string[], stdin: "ignore" | Blob) => {
    const child = Bun.spawnSync([tool, "--file=-", ...args], { stdin });
    const text = child.stdout.toString().replace(/^\\(un)?restrict .*$/gm, "");
    return { code: child.exitCode, stderr: child.stderr.toString(), text };
  };
  const file = read([path], "ignore");
  expect(file).toMatchObject({ code: 0, stderr: "", text: expect.stringContaining("COPY public.many ") });
  expect(read([], new Blob([await readFile(path)]))).toEqual(file);
});

test("a missing seal gives an error that says what to do", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "backup");
  const bytes = await dumped(path, "custom");
  for (const length of [5, 50, bytes.length / 2, bytes.length - 1]) {
    await writeFile(path, bytes.subarray(0, length));
    expect(await readSeal(path).catch((error) => error.detail)).toBe(
      `${path} does not end with the seal of svc database dump: it is truncated, or pg_dump alone or an earlier release made it. To use such a dump, load it with pg_restore into an empty database and dump that (docs/database.md, "Backups")`,
    );
  }
});

test("a small file that expands beyond its declaration is refused without using much memory", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "backup");
  const header = Buffer.from(
    JSON.stringify({
      revisions: [],
      tables: [{ schema: "public", name: "t", columns: ["a"] }],
      sequences: [],
    }),
  );
  const summary = Buffer.from(JSON.stringify({ rows: [1], bytes: 1 << 20 }));
  const head = (table: number, length: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32BE(table, 0);
    bytes.writeUInt32BE(length, 4);
    return bytes;
  };
  const write = async (blocks: Buffer[]) => {
    const file = Buffer.concat([
      Buffer.from(`SVC-BACKUP 1 ${header.length}\n`),
      header,
      Buffer.from("\n"),
      ...blocks.flatMap((block) => [head(0, block.length), block]),
      head(0xffffffff, summary.length),
      summary,
    ]);
    await writeFile(path, Buffer.concat([file, new Bun.CryptoHasher("sha256").update(file).digest()]));
  };
  const large = zstdCompressSync(Buffer.alloc(256 << 20));
  const block = zstdCompressSync(Buffer.alloc(1 << 20));
  for (const [blocks, pieces] of [
    [[large], 0],
    [[block, block], 1],
  ] as const) {
    await write([...blocks]);
    const content = await verifyPortable(path);
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    let read = 0;
    const reading = (async () => {
      for await (const _ of readPortable(path, content)) read += 1;
    })();
    expect(await reading.catch((error) => error.detail)).toBe(
      `${path} is damaged: its content has changed since it was written`,
    );
    expect(read).toBe(pieces);
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 << 20);
  }
});
