import { expect, test } from "bun:test";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { temporaryDirectory } from "../../tests/support/database/backup.ts";
import type { BackupHeader } from "./format.ts";
import { readRows, verifyBackup } from "./reader.ts";
import { refuseForeign } from "./restore.ts";
import { BackupWriter } from "./writer.ts";

const header: BackupHeader = {
  created_at: "2026-01-02T03:04:05.000Z",
  release: "1.2.3",
  server_version: "18.4",
  compression: "zstd",
  revisions: [{ id: "one", checksum: "abc" }],
  tables: ["a", "b", "c"].map((name) => ({ schema: "public", name, columns: ["id"] })),
  sequences: [{ schema: "public", name: "s", last_value: "9223372036854775807", is_called: true }],
};

/** Larger than a block, in pieces whose ends do not coincide with a block's. */
const rows = Buffer.concat(Array.from({ length: 400_000 }, (_, index) => Buffer.from(`${index}\n`)));

async function writeFile(path: string): Promise<Buffer> {
  await Bun.write(path, "");
  await using writer = await BackupWriter.open(path, header);
  for (let at = 0; at < rows.length; at += 99_991) {
    if (!writer.add(0, rows.subarray(at, at + 99_991))) await writer.drained;
  }
  writer.add(2, Buffer.from("last\n"));
  await writer.finish([400_000, 0, 1]);
  return Buffer.from(await Bun.file(path).arrayBuffer());
}

test("what was written can be read back, table by table", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "backup");
  const bytes = await writeFile(path);
  const summary = { rows: [400_000, 0, 1], bytes: rows.length + 5 };
  const reported: number[] = [];
  expect(await verifyBackup(path, (at) => reported.push(at))).toEqual({ header, summary });
  expect(reported.length).toBeGreaterThan(3);
  const read = await Array.fromAsync(readRows(path, { header, summary }));
  const of = (table: number) =>
    Buffer.concat(read.filter((one) => one.table === table).map(({ rows }) => rows));
  expect(of(0).equals(rows)).toBeTrue();
  expect([of(1).toString(), of(2).toString()]).toEqual(["", "last\n"]);
  await refuseForeign(path);
  expect(bytes.toString("latin1").split("\n", 2)[1]).toBe(JSON.stringify(header));
});

/** The same backup as format 1 wrote it: without the starts of skippable frames. */
function asFirstFormat(bytes: Buffer): Buffer {
  const start = bytes.indexOf("\n", bytes.indexOf("\n") + 1) + 1;
  const parts: Uint8Array[] = [
    Buffer.from(bytes.subarray(0, start).toString().replace("SVC-BACKUP 2", "SVC-BACKUP 1")),
  ];
  for (let at = start; at < bytes.length - 32;) {
    const end = at + 16 + bytes.readUInt32BE(at + 12);
    parts.push(bytes.subarray(at + 8, end));
    at = end;
  }
  const content = Buffer.concat(parts);
  return Buffer.concat([content, new Bun.CryptoHasher("sha256").update(content).digest()]);
}

test("everything after the header is zstd, and the first format can still be read", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "backup");
  const bytes = await writeFile(path);
  const start = bytes.indexOf("\n", bytes.indexOf("\n") + 1) + 1;
  const text = zstdDecompressSync(bytes.subarray(start));
  expect(text.equals(Buffer.concat([rows, Buffer.from("last\n")]))).toBeTrue();
  await Bun.write(path, asFirstFormat(bytes));
  const content = await verifyBackup(path);
  const read = await Array.fromAsync(readRows(path, content));
  expect(Buffer.concat(read.map((one) => one.rows)).equals(text)).toBeTrue();
});

test("a file that ends early is reported as truncated, wherever it ends", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "backup");
  const bytes = await writeFile(path);
  const ends = [0, 5, 12, 100, 1000, bytes.length - 33, bytes.length - 32, bytes.length - 1];
  for (const end of [...ends, ...Array.from({ length: 20 }, (_, i) => Math.floor((i / 20) * bytes.length))]) {
    await Bun.write(path, bytes.subarray(0, end));
    const error = await verifyBackup(path).catch((error) => error);
    expect({ end, detail: error.detail }).toEqual({
      end,
      detail: `${path} is truncated: its end is missing`,
    });
  }
});

test("a flipped bit is detected, wherever it is", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "backup");
  const bytes = await writeFile(path);
  const offsets = Array.from({ length: 60 }, (_, index) => Math.floor((index / 60) * bytes.length));
  for (const at of [...offsets, bytes.length - 1]) {
    const changed = Buffer.from(bytes);
    changed[at]! ^= 4;
    await Bun.write(path, changed);
    const error = await verifyBackup(path).catch((error) => error);
    expect({ at, detail: error.detail }).toEqual({
      at,
      detail: expect.stringMatching(/ is (damaged|truncated): |newer release/),
    });
  }
  await Bun.write(path, Buffer.concat([bytes, Buffer.from("x")]));
  expect(verifyBackup(path)).rejects.toThrow("is damaged: its content has changed since it was written");
});

test("a newer format and a foreign file are reported as such", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "backup");
  const bytes = await writeFile(path);
  await Bun.write(path, Buffer.concat([Buffer.from("SVC-BACKUP 3 7\n"), bytes.subarray(20)]));
  expect(verifyBackup(path)).rejects.toThrow(`${path} was made by a newer release of svc (format 3)`);
  await Bun.write(path, "");
  expect(refuseForeign(path)).rejects.toThrow(`${path} is not a backup of svc: it is empty`);
  for (const text of ["SVC", "-- PostgreSQL database dump", "\u0000".repeat(40)]) {
    await Bun.write(path, text);
    expect(refuseForeign(path)).rejects.toThrow(`${path} is not a backup of svc: its format is unknown`);
  }
  await Bun.write(path, "PGDMP\u0001");
  expect(refuseForeign(path)).rejects.toThrow("it is an archive of pg_dump");
  expect(refuseForeign(join(directory.path, "nothing"))).rejects.toThrow(
    `There is no nothing in ${directory.path}`,
  );
  expect(refuseForeign(directory.path)).rejects.toThrow(`${directory.path} is a directory`);
  const pipe = join(directory.path, "pipe");
  expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  expect(refuseForeign(pipe)).rejects.toThrow(`${pipe} is not a regular file`);
});
