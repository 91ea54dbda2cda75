import { aptInstall, ensure } from "./ensure.ts";

const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/** The path of a browser for the tests. */
export function findChromium(): string | undefined {
  if (process.env.SVC_TEST_CHROMIUM) return process.env.SVC_TEST_CHROMIUM;
  return names.map((name) => Bun.which(name)).find((path) => path !== null) ?? undefined;
}

/** Ensures that there is one. @throws Error with the command to install one */
export function ensureChromium(): void {
  ensure({
    why: "The browser tests need Chromium, and there is none on the PATH",
    install: aptInstall("chromium"),
    elsewhere: "name one in SVC_TEST_CHROMIUM",
    found: () => findChromium() !== undefined,
  });
}
