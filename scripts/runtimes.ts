import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

const root = join(import.meta.dir, "..");

/** The platforms of the executable, and the npm package with the Bun of each. */
export const platforms = {
  "linux-x64": "@oven/bun-linux-x64",
  "linux-arm64": "@oven/bun-linux-aarch64",
  "darwin-x64": "@oven/bun-darwin-x64",
  "darwin-arm64": "@oven/bun-darwin-aarch64",
  "windows-x64": "@oven/bun-windows-x64",
} as const;
export type Platform = keyof typeof platforms;

/** This machine's platform, if it is one of them. */
export const thisPlatform = Object.keys(platforms).find(
  (name) => name === `${process.platform.replace("win32", "windows")}-${process.arch}`,
) as Platform | undefined;

/**
 * The Bun of a platform, in the version that runs this script. That of another platform is downloaded from npm, checked
 * against package-lock.json, and cached in node_modules.
 *
 * @throws Error if it cannot be downloaded or does not match the lock file
 */
export async function runtimeOf(platform: Platform): Promise<string> {
  if (platform === thisPlatform) return process.execPath;
  const name = platforms[platform];
  const { version, integrity } = await locked(name);
  const cache = join(root, "node_modules/.cache/svc");
  const runtime = join(cache, `bun-${platform}-${version}`);
  if (existsSync(runtime)) return runtime;
  await mkdir(cache, { recursive: true });
  const directory = await mkdtemp(join(cache, "unpack-"));
  try {
    const packed = Bun.spawnSync(
      ["npm", "pack", `${name}@${version}`, "--silent", "--pack-destination", directory],
      { cwd: root, stdio: ["ignore", "pipe", "pipe"] },
    );
    if (packed.exitCode !== 0) throw new Error(`npm has no ${name}@${version}: ${packed.stderr}`.trim());
    const archive = join(directory, packed.stdout.toString().trim());
    assertIntegrity(name, await readFile(archive), integrity);
    const unpacked = Bun.spawnSync(["tar", "-xzf", archive, "-C", directory]);
    if (unpacked.exitCode !== 0) throw new Error(`${name} cannot be unpacked: ${unpacked.stderr}`.trim());
    // Atomic, because another build may run at the same time.
    await rename(join(directory, "package/bin", platform === "windows-x64" ? "bun.exe" : "bun"), runtime);
    return runtime;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function locked(name: string): Promise<{ version: string; integrity: string }> {
  const lock = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8"));
  return lock.packages[`node_modules/${name}`];
}

/** @throws Error */
export function assertIntegrity(name: string, content: Uint8Array, integrity: string): void {
  const found = `sha512-${createHash("sha512").update(content).digest("base64")}`;
  if (found !== integrity)
    throw new Error(`the checksum of ${name} differs from package-lock.json: it is not used`);
}
