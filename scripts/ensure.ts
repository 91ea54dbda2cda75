import { existsSync } from "node:fs";

/** A program that some tests need and npm does not install. */
interface Need {
  /** One sentence that names what needs the program, and that it is missing. */
  why: string;
  /** A shell command, for root on Debian. */
  install: string;
  /** The instructions for other systems. */
  elsewhere?: string;
  found: () => boolean;
}

/** Waits for another installation: of a concurrent run, or of a machine that has just started. */
export const aptInstall = (packages: string) =>
  `apt-get update -o DPkg::Lock::Timeout=300 && apt-get install -y -o DPkg::Lock::Timeout=300 --no-install-recommends ${packages}`;

/**
 * Ensures that the program is installed. For root on Debian (a container, a CI machine), it installs it; otherwise, the
 * error has the command.
 *
 * @throws Error, with the command
 */
export function ensure({ why, install, elsewhere, found }: Need): void {
  if (found()) return;
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) {
    const other = elsewhere ? ` Elsewhere: ${elsewhere}` : "";
    throw new Error(`${why}. On Debian: sudo sh -c '${install.replaceAll("'", `'\\''`)}'.${other}`);
  }
  console.log(`${why}: ${install}`);
  const { exitCode, stdout, stderr } = Bun.spawnSync(["sh", "-c", install], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    stdin: "ignore",
  });
  if (exitCode === 0 && found()) return;
  throw new Error(`${why}, and this failed: ${install}\n${stdout}${stderr}`.trim());
}

/** Finds programs by name on the PATH. */
export function ensurePrograms(why: string, packages: string, ...programs: string[]): void {
  const found = () => programs.every((program) => Bun.which(program) !== null);
  ensure({ why, install: aptInstall(packages), found });
}
