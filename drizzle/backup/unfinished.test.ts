import { expect, test } from "bun:test";
import { mkdir, readdir, stat, symlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import { temporaryDirectory } from "../../tests/support/database/backup.ts";
import { writeWhole } from "./unfinished.ts";

test("the old file keeps its name until the new one is complete", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "backup");
  await Bun.write(path, "old");
  const result = await writeWhole(path, async (unfinished) => {
    expect((await stat(unfinished)).mode & 0o777).toBe(0o600);
    expect(unfinished).toMatch(/\/\.backup\.[0-9a-f]{12}\.unfinished$/);
    await Bun.write(unfinished, "new");
    expect(await Bun.file(path).text()).toBe("old");
    return 7;
  });
  expect([result, await Bun.file(path).text(), await readdir(directory.path)]).toEqual([
    7,
    "new",
    ["backup"],
  ]);
});

test("a failure leaves only the old file, and the error names the path", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "backup");
  await Bun.write(path, "old");
  const detail = (code: string) =>
    writeWhole(path, async () => {
      throw Object.assign(new Error("write"), { code });
    }).catch((error) => error.detail);
  expect(await detail("ENOSPC")).toBe(`The disk is full: ${path} could not be written completely`);
  expect(await detail("EFBIG")).toStartWith(`${path} would exceed the maximum file size`);
  expect(await detail("EROFS")).toBe(`${path} cannot be written: its file system is read-only`);
  expect([await Bun.file(path).text(), await readdir(directory.path)]).toEqual(["old", ["backup"]]);
});

test("an existing directory of that name, and a missing directory, are refused before the work", async () => {
  await using directory = await temporaryDirectory();
  const never = () => Promise.reject(new Error("was begun"));
  const path = join(directory.path, "taken");
  await mkdir(path);
  await expect(writeWhole(path, never)).rejects.toThrow(`${path} is a directory`);
  const lost = join(directory.path, "missing", "backup");
  await expect(writeWhole(lost, never)).rejects.toThrow(`There is no missing in ${directory.path}`);
});

test("files of a killed dump are removed after a day without writes, and newer ones are kept", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "backup");
  const [dead, alive, other] = [".backup.aa.unfinished", ".backup.bb.unfinished", ".other.aa.unfinished"];
  for (const name of [dead, alive, other]) await Bun.write(join(directory.path, name), "x");
  const hours = (count: number) => new Date(Date.now() - count * 3_600_000);
  for (const [name, age] of [
    [dead, 25],
    [alive, 23],
    [other, 25],
  ] as const) {
    await utimes(join(directory.path, name), hours(age), hours(age));
  }
  await writeWhole(path, async () => {});
  expect((await readdir(directory.path)).sort()).toEqual([alive, other, "backup"]);
});

test("a pipe, a directory, and links to them are refused before the work, and stay", async () => {
  await using directory = await temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  expect(Bun.spawnSync(["mkfifo", at("pipe")]).exitCode).toBe(0);
  await symlink(at("pipe"), at("link"));
  await symlink("/dev/null", at("device"));
  for (const name of ["pipe", "link", "device"]) {
    const refused = writeWhole(at(name), () => expect.unreachable()).catch((error) => error.detail);
    expect(await refused).toBe(`${at(name)} is not a regular file: move it away`);
  }
  expect((await readdir(directory.path)).sort()).toEqual(["device", "link", "pipe"]);
  expect((await stat(at("link"))).isFIFO()).toBeTrue();
});
