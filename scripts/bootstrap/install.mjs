import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "./lock.mjs";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Written after each installation, because `bun install` does not record what it installed. */
const stampFile = "node_modules/.svc-installed";

/** Installs the packages of package-lock.json if they are missing. Of two at once, one works and the other waits. */
export async function ensureInstalled(directory) {
  if (!whyInstall(directory)) return;
  mkdirSync(join(directory, ".svc"), { recursive: true });
  const say = (text) => process.stderr.write(`svc: ${text}\n`);
  await withLock(join(directory, ".svc", "install.lock"), say, async () => {
    const reason = whyInstall(directory);
    if (!reason) return;
    const { command, args, shell } = installer();
    say(`${reason}: ${[command, ...args].map((word) => word.split(/[\\/]/).pop()).join(" ")} ...`);
    const started = Date.now();
    await run(command, args, directory, shell);
    writeFileSync(join(directory, stampFile), `${digest(directory)}\n`);
    say(`dependencies installed in ${Math.round((Date.now() - started) / 1000)} s`);
  });
}

/** The reason to install, or undefined. Compares contents, because git and rsync change file times. */
export function whyInstall(directory) {
  if (!existsSync(join(directory, "node_modules"))) return "dependencies are not installed yet";
  const changed = "package-lock.json has changed since the dependencies were installed";
  try {
    if (readFileSync(join(directory, stampFile), "utf8").trim() === digest(directory)) return undefined;
  } catch {
    // Installed by hand: npm's record shows it.
  }
  try {
    const wanted = packages(join(directory, "package-lock.json"));
    const installed = packages(join(directory, "node_modules/.package-lock.json"));
    for (const [path, { version, optional }] of Object.entries(wanted)) {
      if (path !== "" && !optional && installed[path]?.version !== version) return changed;
    }
    return undefined;
  } catch {
    return "the last installation of the dependencies was not completed";
  }
}

function packages(file) {
  return JSON.parse(readFileSync(file, "utf8")).packages;
}

function digest(directory) {
  return createHash("sha256")
    .update(readFileSync(join(directory, "package-lock.json")))
    .digest("hex");
}

/** npm if it exists, because the lock file is npm's; otherwise Bun. */
function installer() {
  const npmArgs = [
    "ci",
    "--include=dev",
    "--include=optional",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
  ];
  const npm = process.env.npm_execpath;
  // A program that npm started: the same npm, whatever PATH says.
  if (npm && /npm-cli\.c?js$/.test(npm) && existsSync(npm) && !process.versions.bun) {
    return { command: process.execPath, args: [npm, ...npmArgs] };
  }
  const windows = process.platform === "win32";
  const name = windows ? "npm.cmd" : "npm";
  const found = (process.env.PATH ?? "")
    .split(delimiter)
    .some((path) => path && existsSync(join(path, name)));
  // Windows starts a .cmd through a shell only; no argument here needs quoting.
  if (found || !process.versions.bun) return { command: name, args: npmArgs, shell: windows };
  return { command: process.execPath, args: ["install", "--no-save", "--no-progress"] };
}

function run(command, args, cwd, shell = false) {
  return new Promise((settle, reject) => {
    // Its stdout is only messages, and ours may be data.
    const child = spawn(command, args, { cwd, shell, stdio: ["ignore", 2, 2] });
    const end = () => child.kill();
    process.once("exit", end);
    child.on("error", (error) => {
      const hint = error.code === "ENOENT" ? `${command} is not on the PATH` : error.message;
      reject(new Error(`cannot install the dependencies: ${hint}`));
    });
    child.on("close", (code, signal) => {
      process.removeListener("exit", end);
      if (code === 0) settle();
      else
        reject(
          new Error(
            `cannot install the dependencies: ${command} ended with ${signal ?? `exit code ${code}`}`,
          ),
        );
    });
  });
}

/** npm links a package's programs where it is a dependency, not in its own clone; with the link `npx svc` is fast. */
export function linkProgram(directory) {
  const path = join(directory, "node_modules/.bin/svc");
  if (process.platform === "win32" || existsSync(path)) return;
  try {
    unlinkSync(path);
  } catch {
    // There was no link; a dangling one is replaced.
  }
  try {
    symlinkSync("../../bin/svc.mjs", path);
  } catch {
    // Another process made it, or node_modules is not ours: npx then finds the program by package.json, only slower.
  }
}
