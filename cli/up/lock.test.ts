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

test.each([
  ["file/below", "ENOTDIR"],
  ["odd", "SQLITE_CANTOPEN"],
])("%s: a folder that cannot be written is named, with the option that changes it", (name, code) => {
  const path = join(directory, name);
  const sentence = `${path} cannot be written (${code}): choose another folder with --data-dir`;
  expect(() => lockDirectory(path, "")).toThrow(new SvcError("configuration", sentence));
});

test("a lock that cannot be read is named, instead of taken for a trial that does not run", () => {
  const lock = join(directory, "odd/lock.db");
  const ask = () => runningTrial(join(directory, "odd"));
  expect(ask).toThrow(ConfigurationError);
  // A folder in its place is SQLITE_IOERR_READ; a file of another user is SQLITE_CANTOPEN.
  expect(ask).toThrow(`Whether a trial runs here is unknown: ${lock} cannot be read (SQLITE_`);
});
