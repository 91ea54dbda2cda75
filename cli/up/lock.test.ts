import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigurationError, SvcError } from "../../platform/errors.ts";
import { lockDirectory, runningTrial } from "./lock.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-lock-"));
afterAll(() => rmSync(directory, { recursive: true }));
writeFileSync(join(directory, "file"), "");
mkdirSync(join(directory, "odd/lock.db"), { recursive: true });
mkdirSync(join(directory, "other"));
writeFileSync(join(directory, "other/lock.db"), "of another program ".repeat(100));

test.each([
  ["file/below", "ENOTDIR"],
  ["odd", "SQLITE_CANTOPEN"],
  ["other", "SQLITE_NOTADB"],
])("%s: a folder that cannot be written is named, with the option that changes it", (name, code) => {
  const path = join(directory, name);
  const sentence = `${path} cannot be written (${code}): choose another folder with --data-dir`;
  expect(() => lockDirectory(path, "")).toThrow(new SvcError("configuration", sentence));
});

test.each(["odd", "other"])("%s: a lock that cannot be read does not mean that no trial runs", (name) => {
  const ask = () => runningTrial(join(directory, name));
  expect(ask).toThrow(ConfigurationError);
  const lock = join(directory, name, "lock.db");
  expect(ask).toThrow(`Whether a trial runs here is unknown: ${lock} cannot be read (SQLITE_`);
});
