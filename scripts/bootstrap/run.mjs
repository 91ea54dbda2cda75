import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";

/** A real Bun has 90 MB; the stub that npm leaves when it may not run install scripts has less than one kilobyte. */
const smallestBun = 1_000_000;

/**
 * Finds the Bun that package-lock.json pins.
 *
 * npm may refuse to run its install script. `bun/bin/bun.exe` (so named on every platform) is then a stub, and the
 * program is still in the package of the platform, from which the script would have copied it.
 */
export function findBun(root) {
  const modules = join(root, "node_modules");
  const installed = join(modules, "bun", "bin", "bun.exe");
  if (isReal(installed)) return installed;
  const system = process.platform === "win32" ? "windows" : process.platform;
  const arch = process.arch === "arm64" ? "aarch64" : process.arch;
  const scope = join(modules, "@oven");
  const packages = existsSync(scope)
    ? readdirSync(scope).filter((n) => n.startsWith(`bun-${system}-${arch}`))
    : [];
  const program = system === "windows" ? "bun.exe" : "bun";
  // If both the glibc and the musl package are there, use the one that starts.
  const found = packages
    .map((name) => join(scope, name, "bin", program))
    .filter(isReal)
    .find(starts);
  if (found) return found;
  throw new Error(
    `there is no Bun for ${system}-${arch} in node_modules (npm package @oven/bun-${system}-${arch}): ` +
      "remove node_modules and start again; npm must be allowed to install optional dependencies",
  );
}

function isReal(path) {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats !== undefined && stats.size > smallestBun;
}

function starts(path) {
  if (process.platform !== "win32") chmodSync(path, 0o755);
  return spawnSync(path, ["--version"], { stdio: "ignore" }).status === 0;
}

/**
 * Becomes `bun <script> <args>`: by execve if Node has it, else by a child that gets our streams and signals and
 * whose exit code becomes ours. Never returns.
 *
 * Bun reads `.env` and `bunfig.toml` from the current directory, which may contain anything: a `preload` there would run
 * in our program. So Bun gets our own files instead.
 */
export function becomeBun(root, script, args) {
  const bun = findBun(root);
  const flags = ["--no-env-file", "--no-install", `--config=${join(root, "bunfig.toml")}`];
  const words = [...flags, join(root, script), ...args];
  // The process that waits for us may be killed without notice, so long-running programs watch these processes.
  const starters = process.env.npm_lifecycle_event ? [starter()] : [];
  const env = { ...process.env, SVC_END_WITH: starters.join(",") };
  if (typeof process.execve === "function" && !process.versions.bun)
    process.execve(bun, [bun, ...words], env);
  env.SVC_END_WITH = [process.pid, ...starters].join(",");
  const child = spawn(bun, words, { stdio: "inherit", env });
  child.on("error", (error) => fail(`cannot start ${bun}: ${error.message}`));
  for (const signal of ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"])
    process.on(signal, () => child.kill(signal));
  // The terminal sends Ctrl-C to both processes, and a second one would mean "immediately" to the child.
  process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"));
  child.on("exit", (code, signal) => {
    process.exit(code ?? 128 + (constants.signals[signal] ?? 1));
  });
}

/** The process of npm, npx or `bun run`, which may have started us through a shell. */
function starter() {
  if (process.platform === "win32") return process.ppid;
  const [parent, command] = procStat(process.ppid) ?? ps(process.ppid) ?? [];
  return parent && /(^|[/-])(sh|bash|dash|zsh|ash|busybox)$/.test(command) ? Number(parent) : process.ppid;
}

/** Parent and name of a process, on Linux. */
function procStat(pid) {
  try {
    const [, command, parent] = readFileSync(`/proc/${pid}/stat`, "utf8").match(/\((.*)\) \S (\d+)/);
    return [parent, command];
  } catch {
    return undefined;
  }
}

/** The same on other systems. */
function ps(pid) {
  const { stdout } = spawnSync("ps", ["-o", "ppid=,comm=", "-p", String(pid)], { encoding: "utf8" });
  return stdout?.match(/(\d+)\s+(\S+)/)?.slice(1);
}

export function fail(message) {
  process.stderr.write(`svc: ${message}\n`);
  process.exit(1);
}
