import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createRunDirectory } from "./run_directory.ts";

const path = mkdtempSync(join(tmpdir(), "svc-memory-"));
afterAll(() => rmSync(path, { recursive: true }));
const memory = { path, neededBytes: 0, starts: (program: string) => Bun.spawnSync([program]).success };

/** Creates one, empty, and removes it. @returns where it was */
async function parent(env: Record<string, string>, at = memory): Promise<string> {
  const directory = await createRunDirectory(env, at);
  expect(readdirSync(directory)).toEqual([]);
  rmSync(directory, { recursive: true });
  return dirname(directory);
}

test("a run's files are in memory, unless TMPDIR names another place", async () => {
  expect(await parent({})).toBe(path);
  expect(await parent({ TMPDIR: tmpdir() })).toBe(tmpdir());
});

test("they are on disk if memory has no room, starts no program or does not exist", async () => {
  expect(await parent({}, { ...memory, neededBytes: 1e15 })).toBe(tmpdir());
  expect(await parent({}, { ...memory, starts: () => false })).toBe(tmpdir());
  expect(readdirSync(path)).toEqual([]);
  expect(await parent({}, { ...memory, path: join(path, "none") })).toBe(tmpdir());
});
