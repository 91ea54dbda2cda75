import { aptInstall, ensure } from "./ensure.ts";

const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/** Ensures that the tests have a browser. @throws Error with the command to install one */
export function ensureChromium(): void {
  ensure({
    why: "The browser tests need Chromium, and there is none on the PATH",
    install: aptInstall("chromium"),
    elsewhere: "name one in SVC_TEST_CHROMIUM",
    found: () => Boolean(process.env.SVC_TEST_CHROMIUM) || names.some((name) => Bun.which(name)),
  });
}
