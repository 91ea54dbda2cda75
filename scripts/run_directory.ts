import { statfsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A file system in memory. */
interface Memory {
  path: string;
  /** What must be free. A run needs less than half of it; the rest is for the machine. */
  neededBytes: number;
  /** Whether the executable at this path starts. */
  starts(program: string): boolean;
}

const sharedMemory: Memory = {
  path: "/dev/shm",
  neededBytes: 6e9,
  starts(program) {
    try {
      return Bun.spawnSync([program]).success;
    } catch {
      return false;
    }
  },
};

/**
 * Creates a directory for all files of a test run. It is in memory if there is room, and if programs start from there
 * (containers often mount it `noexec`). The run creates and removes nearly a million files, and ext4 is slow at that: it
 * searches for an inode that was not freed in the last seconds. `TMPDIR` overrides it.
 */
export async function createRunDirectory(
  env: Readonly<Record<string, string | undefined>> = process.env,
  memory: Memory = sharedMemory,
): Promise<string> {
  if (env.TMPDIR === undefined && hasRoom(memory)) {
    const directory = await mkdtemp(join(memory.path, "svc-test-"));
    if (await startsPrograms(memory, directory)) return directory;
    await rm(directory, { recursive: true });
  }
  return mkdtemp(join(tmpdir(), "svc-test-"));
}

function hasRoom({ path, neededBytes }: Memory): boolean {
  try {
    const { bavail, bsize } = statfsSync(path);
    return Math.min(bavail * bsize, process.availableMemory()) >= neededBytes;
  } catch {
    return false;
  }
}

async function startsPrograms({ starts }: Memory, directory: string): Promise<boolean> {
  const program = join(directory, "program");
  await writeFile(program, "#!/bin/sh\n", { mode: 0o700 });
  try {
    return starts(program);
  } finally {
    await rm(program);
  }
}
