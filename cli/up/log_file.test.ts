import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LogFile } from "./log_file.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-log-"));
afterAll(() => rmSync(directory, { recursive: true }));
const read = (file: string) => readFileSync(file, "utf8");

test("begins anew when it is full and at each start, and keeps the one before", () => {
  const path = join(directory, "log", "server.log");
  const faults: Error[] = [];
  const lines = Array.from({ length: 100 }, (_, n) => `line ${n} é\n`);
  const log = new LogFile(path, (error) => faults.push(error), 200);
  for (const line of lines) log.write(line);
  log.end();
  const kept = read(`${path}.1`) + read(path);
  expect(lines.join("")).toEndWith(kept);
  expect(statSync(`${path}.1`).size).toBeWithin(180, 201);
  expect(statSync(path).size).toBeWithin(1, 201);
  expect(readdirSync(join(directory, "log")).sort()).toEqual(["server.log", "server.log.1"]);
  expect(statSync(path).mode & 0o777).toBe(0o600);

  const before = read(path);
  const next = new LogFile(path, (error) => faults.push(error), 200);
  next.write("first\n");
  next.end();
  expect([read(path), read(`${path}.1`)]).toEqual(["first\n", before]);
  expect(faults).toEqual([]);
});

test("a write error is reported once, and writing resumes when it can", () => {
  const path = join(directory, "other", "server.log");
  writeFileSync(join(directory, "other"), "");
  const faults: string[] = [];
  const log = new LogFile(path, (error) => faults.push((error as NodeJS.ErrnoException).code!));
  log.write("lost\n");
  rmSync(join(directory, "other"));
  mkdirSync(join(directory, "other"));
  log.write("kept\n");
  log.end();
  expect([read(path), faults.length]).toEqual(["kept\n", 1]);
});
