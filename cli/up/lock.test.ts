import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SvcError } from "../../platform/errors.ts";
import { lockDirectory } from "./lock.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-lock-"));
afterAll(() => rmSync(directory, { recursive: true }));
writeFileSync(join(directory, "file"), "");
mkdirSync(join(directory, "odd/lock.db"), { recursive: true });

test.each([
  ["file/below", "ENOTDIR"],
  ["odd", "SQLITE_CANTOPEN"],
])("%s: a folder that cannot be written is named, with the option that changes it", (name, code) => {
  const path = join(directory, name);
  const sentence = `${path} cannot be written (${code}): choose another folder with --data-dir`;
  expect(() => lockDirectory(path, "")).toThrow(new SvcError("configuration", sentence));
});
