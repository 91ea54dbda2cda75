import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface SmallDisk {
  /** `disk`: a file system of 1 MB. `limit`: a maximum file size of 512 KB. */
  kind: "disk" | "limit";
  /** Runs a shell script in an empty directory with this limit. */
  run(script: string, env: Record<string, string>): { code: number | null; stdout: string; stderr: string };
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Uses a tmpfs in a separate mount namespace, as root or in a user namespace. Without the right to mount, as in a container,
 * it limits the size of files instead, which works on every system.
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
  // SIGXFSZ would end the program. If it is ignored, the write fails. The limit is in units of 512 bytes.
  const limit = 'trap "" XFSZ; cd "$1"; ulimit -f 1024; ';
  return {
    kind: way ? "disk" : "limit",
    run: (script, env) => shell(way ?? [], (way ? mount : limit) + script, env),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}
