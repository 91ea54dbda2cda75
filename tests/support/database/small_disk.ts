import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface SmallDisk {
  /** `disk`: a file system of a megabyte. `limit`: no file of ours may be larger than half of one. */
  kind: "disk" | "limit";
  /** Runs a shell script in an empty directory where there is no room for more than a megabyte. */
  run(script: string, env: Record<string, string>): { code: number | null; stdout: string; stderr: string };
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A tmpfs in a mount namespace of its own, as root or as a user who may make one; where neither is allowed (a container
 * without the right to mount), a limit on the size of files, which every system has.
 */
export async function smallDisk(): Promise<SmallDisk> {
  const directory = await mkdtemp(join(tmpdir(), "svc-small-"));
  const mount = 'mount -t tmpfs -o size=1m svc-test "$1" && cd "$1" && shift && ';
  const ways = [
    ["unshare", "--mount"],
    ["unshare", "--user", "--map-root-user", "--mount"],
  ];
  const shell = (way: string[], script: string, env: Record<string, string>) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync([...way, "sh", "-c", script, "sh", directory], {
      env: { PATH: process.env.PATH, ...env },
      stdin: "ignore",
    });
    return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
  };
  const way = ways.find((way) => Bun.which(way[0]!) && shell(way, `${mount} true`, {}).code === 0);
  // The signal would end a program that has not thought of it; ignored, the write fails. In units of 512 bytes.
  const limit = 'trap "" XFSZ; cd "$1"; ulimit -f 1024; ';
  return {
    kind: way ? "disk" : "limit",
    run: (script, env) => shell(way ?? [], (way ? mount : limit) + script, env),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}
