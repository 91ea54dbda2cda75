import { expect, test } from "bun:test";
import { chmod, readdir, utimes } from "node:fs/promises";
import { join } from "node:path";
import { temporaryDirectory } from "../../tests/support/database/backup.ts";

const script = join(import.meta.dir, "backup");

/** Runs the script with an `svc database dump` that runs this shell code. */
async function backup(directory: string, argument: string, svc = "printf 12345 >svc-backup.dump") {
  const program = join(directory, "bin", "svc");
  await Bun.write(program, `#!/bin/sh\n[ "$*" = "database dump" ] || exit 9\n${svc}\n`);
  await chmod(program, 0o755);
  const env = { PATH: `${directory}/bin:/usr/bin:/bin` };
  const { exitCode, stdout, stderr } = Bun.spawnSync(["sh", script, argument], { cwd: directory, env });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

const quiet = { code: 0, stdout: "", stderr: "" };

/** The time of the last successful dump, from the metrics file. */
async function lastSuccess(directory: string): Promise<number> {
  const text = await Bun.file(join(directory, "svc-backup.prom")).text();
  return Number(/^svc_backup_last_success_timestamp_seconds (\d+)$/m.exec(text)?.[1]);
}

test("a successful dump writes a file, and metrics of its time and size", async () => {
  await using directory = await temporaryDirectory();
  const { path } = directory;
  const before = Math.floor(Date.now() / 1000);
  expect(await backup(path, "once")).toEqual(quiet);
  const files = (await readdir(path)).filter((name) => name !== "bin").sort();
  expect(files).toEqual([expect.stringMatching(/^svc-\d{4}-\d\d-\d\dT\d{6}Z\.dump$/), "svc-backup.prom"]);
  const text = await Bun.file(join(path, "svc-backup.prom")).text();
  expect(text).toContain("\nsvc_backup_last_success_bytes 5\n");
  expect(await lastSuccess(path)).toBeGreaterThanOrEqual(before);
  // The alerts use the metrics that are written.
  const rules = await Bun.file(join(import.meta.dir, "../alerts.yaml")).text();
  expect(rules).toContain("svc_backup_last_success_timestamp_seconds");
});

test("a failed dump exits with an error, and is not reported as a success", async () => {
  await using directory = await temporaryDirectory();
  const { path } = directory;
  const failed = "printf half >svc-backup.dump; echo 'svc: made up' >&2; exit 1";
  expect(await backup(path, "once", failed)).toEqual({ code: 1, stdout: "", stderr: "svc: made up\n" });
  expect(await readdir(path)).not.toContain("svc-backup.prom");
  expect(await backup(path, "check")).toMatchObject({ code: 1 });
  await backup(path, "once");
  await Bun.write(join(path, "svc-backup.prom"), "svc_backup_last_success_timestamp_seconds 7\n");
  expect(await backup(path, "once", failed)).toMatchObject({ code: 1 });
  expect(await lastSuccess(path)).toBe(7);
});

test("`check` fails once the newest dump is older than 26 hours; dumps of two weeks stay", async () => {
  await using directory = await temporaryDirectory();
  const { path } = directory;
  const dumpOf = async (name: string, hours: number) => {
    await Bun.write(join(path, name), "x");
    const at = Date.now() / 1000 - hours * 3600;
    await utimes(join(path, name), at, at);
  };
  await dumpOf("svc-2026-01-01T000000Z.dump", 27);
  await dumpOf("svc-backup.dump", 1);
  expect(await backup(path, "check")).toMatchObject({ code: 1 });
  await dumpOf("svc-2026-01-02T000000Z.dump", 25);
  expect(await backup(path, "check")).toEqual(quiet);
  await dumpOf("svc-2025-12-01T000000Z.dump", 16 * 24);
  await dumpOf("mine.dump", 16 * 24);
  await backup(path, "once", "exit 1");
  expect(await readdir(path)).toContain("svc-2025-12-01T000000Z.dump");
  await backup(path, "once");
  const left = await readdir(path);
  expect(left).not.toContain("svc-2025-12-01T000000Z.dump");
  expect(left).toContain("mine.dump");
  expect(left).toContain("svc-2026-01-01T000000Z.dump");
});

test("an unknown argument does not start a dump", async () => {
  await using directory = await temporaryDirectory();
  expect(await backup(directory.path, "chekc")).toEqual({
    code: 2,
    stdout: "",
    stderr: "backup: unknown argument: chekc\n",
  });
});
