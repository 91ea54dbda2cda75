import { existsSync } from "node:fs";

const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/**
 * Makes sure that there is a browser for the tests that need one. Root on a Debian gets it installed (a container, a
 * CI machine); anybody else is told what to type.
 *
 * @throws Error, one line with the command
 */
export function ensureChromium(): void {
  const found = () => process.env.SVC_TEST_CHROMIUM || names.some((name) => Bun.which(name));
  if (found()) return;
  const install = "apt-get update && apt-get install -y --no-install-recommends chromium";
  const why = "The browser tests need Chromium, and there is none on the PATH";
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) {
    throw new Error(`${why}. On Debian: sudo sh -c '${install}'. Elsewhere: name one in SVC_TEST_CHROMIUM`);
  }
  console.log(`${why}: ${install}`);
  const { exitCode, stdout, stderr } = Bun.spawnSync(["sh", "-c", install], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    stdin: "ignore",
  });
  if (exitCode === 0 && found()) return;
  throw new Error(`${why}, and this failed: ${install}\n${stdout}${stderr}`.trim());
}
