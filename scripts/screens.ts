import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { closeChromium, Tab } from "../tests/support/browser/chromium.ts";
import { signInAt } from "../tests/support/browser/sign_in.ts";

// The pictures of docs/screens/, of the example data that a fresh `npm start` has loaded.

const server = process.argv[2] ?? "http://127.0.0.1:8000";
const folder = join(import.meta.dir, "../docs/screens");

const pages = {
  board: "/app",
  incident: "/app/incidents/40",
  "status-report": "/app/incidents/40/status-report",
  work: "/app/work",
  access: "/app/access",
  report: "/app/report",
  document: "/app/documents/1",
  search: "/app/search?q=database",
};

mkdirSync(folder, { recursive: true });
const tab = await Tab.open();
await tab.goto(`${server}/app`);
await signInAt(tab, { user: "alice@example.com" });
await tab.says("Times are in");
for (const [name, path] of Object.entries(pages)) {
  await tab.goto(`${server}${path}`);
  await tab.says("Times are in");
  for (const size of ["desktop", "phone"] as const)
    for (const scheme of ["light", "dark"] as const) {
      await tab.look(size, scheme);
      await Bun.write(join(folder, `${name}-${size}-${scheme}.webp`), await tab.screenshot("webp"));
    }
}
await closeChromium();
process.exit(0);
