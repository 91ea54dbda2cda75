import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Compressed } from "./compressed.ts";
import type { StaticFile } from "./folder.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-static-"));
afterAll(() => rmSync(directory, { recursive: true }));

function file(name: string, content: string, changed = 0): StaticFile {
  const path = join(directory, name);
  writeFileSync(path, content);
  return { name, path, size: content.length, modified: new Date(0), changed };
}

test("compresses each file once for concurrent requests, and again after a change", async () => {
  const compressed = new Compressed();
  const one = file("one.js", "a".repeat(5000));
  const answers = await Promise.all(Array.from({ length: 20 }, () => compressed.get(one)));
  expect(new Set(answers).size).toBe(1);
  expect(await compressed.get(one)).toBe(answers[0]!);
  expect(gunzipSync(answers[0]!).toString()).toBe("a".repeat(5000));
  const changed = await compressed.get(file("one.js", "b".repeat(5000), 1));
  expect(gunzipSync(changed).toString()).toBe("b".repeat(5000));
});

test("evicts the least recently used file", async () => {
  const random = (seed: number) => Bun.hash.xxHash64("x", BigInt(seed)).toString(36);
  const text = (seed: number) => Array.from({ length: 400 }, (_, at) => random(seed * 1000 + at)).join("");
  const files = [1, 2, 3, 4].map((seed) => file(`${seed}.js`, text(seed)));
  const { length } = await new Compressed().get(files[0]!);
  const compressed = new Compressed(length * 2.5);
  const [first] = [await compressed.get(files[0]!), await compressed.get(files[1]!)];
  // Used again, so the second one is evicted.
  expect(await compressed.get(files[0]!)).toBe(first);
  await compressed.get(files[2]!);
  expect(await compressed.get(files[0]!)).toBe(first);
  await Promise.all(files.map((one) => compressed.get(one)));
  expect(compressed.bytes).toBeLessThanOrEqual(length * 2.5);
  expect(compressed.bytes).toBeGreaterThan(length);
});

test("a deleted file fails only its own request", async () => {
  const compressed = new Compressed();
  const one = file("gone.js", "a".repeat(2000));
  rmSync(one.path);
  await expect(compressed.get(one)).rejects.toThrow();
  writeFileSync(one.path, "a".repeat(2000));
  expect((await compressed.get(one)).length).toBeGreaterThan(0);
});
