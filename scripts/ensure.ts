import { existsSync } from "node:fs";

/** A program that some tests need and npm does not bring. */
export interface Need {
  /** One sentence: what needs it, and that it is not there. */
  why: string;
  /** For a shell, as root on a Debian. */
  install: string;
  /** What to do on another system. */
  elsewhere?: string;
  found: () => boolean;
}

/** Another run beside this one, or a machine that has just started, may be installing something: that is waited for. */
export const aptInstall = (packages: string) =>
  `apt-get update -o DPkg::Lock::Timeout=300 && apt-get install -y -o DPkg::Lock::Timeout=300 --no-install-recommends ${packages}`;

/**
 * Makes sure that it is there. Root on a Debian gets it installed (a container, a CI machine); anybody else is told what
 * to type.
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

/** By their names on the PATH. */
export function ensurePrograms(why: string, packages: string, ...programs: string[]): void {
  const found = () => programs.every((program) => Bun.which(program) !== null);
  ensure({ why, install: aptInstall(packages), found });
}
