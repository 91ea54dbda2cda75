import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../package.json" with { type: "json" };
import { build, describeSource } from "./build.ts";
import { assertIntegrity, type Platform, runtimeOf, thisPlatform } from "./runtimes.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-runtimes-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

test("the executable for another processor runs in an emulator", async () => {
  const program = join(directory, "svc-linux-arm64");
  await build(program, { platform: "linux-arm64" });
  expect(kindOf(await Bun.file(program).slice(0, 64).bytes())).toBe("ELF, aarch64");
  const run = (...args: string[]) => {
    const emulator = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"];
    const { exitCode, stdout } = Bun.spawnSync([...emulator, program, ...args], { cwd: directory, env: {} });
    return [exitCode, stdout.toString()];
  };
  // A clone without git has no description.
  const source = describeSource();
  expect(run("--version")).toEqual([0, `${source ? `${version} (${source})` : version}\n`]);
  const [exitCode, help] = run("database", "upgrade", "--help");
  expect(exitCode).toBe(0);
  expect(help).toStartWith("Upgrade the schema to a newer revision\n");
}, 300_000);

test.each<[Platform, string]>([
  ["darwin-arm64", "Mach-O, arm64"],
  ["windows-x64", "PE"],
])(
  "the executable for %s",
  async (platform, kind) => {
    const program = join(directory, `svc-${platform}.exe`);
    await build(program, { platform });
    expect(kindOf(await Bun.file(program).slice(0, 64).bytes())).toBe(kind);
  },
  300_000,
);

test("the Bun of this machine is not downloaded", async () => {
  if (thisPlatform === undefined) throw new Error("this machine is none of those that svc is built for");
  expect(await runtimeOf(thisPlatform)).toBe(process.execPath);
});

test("a file that does not match the lock file is refused", () => {
  const content = Buffer.from("a package");
  const sum = new Bun.CryptoHasher("sha512").update(content).digest("base64");
  expect(() => assertIntegrity("p", content, `sha512-${sum}`)).not.toThrow();
  expect(() => assertIntegrity("p", Buffer.from("a pockage"), `sha512-${sum}`)).toThrow(
    "differs from package-lock.json",
  );
});

/** The format and processor of an executable, from its first bytes. */
function kindOf(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  if (view.getUint32(0) === 0x7f454c46)
    return `ELF, ${view.getUint16(18, true) === 183 ? "aarch64" : "other"}`;
  if (view.getUint32(0, true) === 0xfeedfacf)
    return `Mach-O, ${view.getUint32(4, true) === 0x0100000c ? "arm64" : "other"}`;
  return view.getUint16(0, true) === 0x5a4d ? "PE" : "unknown";
}
