import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { closeChromium, Tab } from "../tests/support/browser/chromium.ts";
import { signInAt } from "../tests/support/browser/sign_in.ts";
import { until } from "../tests/support/process/until.ts";

// The pictures of docs/screens/, of the example data that a fresh `npm start` has loaded: each page, and pages with nothing
// and with long and right-to-left texts.

const server = process.argv[2] ?? "http://127.0.0.1:8000";
const folder = join(import.meta.dir, "../docs/screens");

const pages = {
  board: "/app",
  incident: "/app/incidents/40",
  "status-report": "/app/incidents/40/status-report",
  work: "/app/work",
  access: "/app/access",
  report: "/app/report",
  postmortem: "/app/incidents/40/postmortem",
  numbers: "/app/numbers",
  schedule: "/app/admin/schedule",
  profile: "/app/profile",
  "board-empty": "/app?type=999999",
  "search-nothing": "/app/search?q=zzyzx",
  document: "/app/documents/1",
  search: "/app/search?q=database",
};

const long = {
  title: `تعطل الدفع שלום ${"Donaudampfschifffahrtsgesellschaftskapitän".repeat(3)}`,
  description: `لا يمكن للعملاء الدفع منذ الساعة ١١:٤٠\n\n${"A word and another one. ".repeat(30)}`,
};

mkdirSync(folder, { recursive: true });
const tab = await Tab.open();
await tab.goto(`${server}/app`);
await signInAt(tab, { user: "alice@example.com" });
await tab.says("Times are in");
await requireExample();
for (const [name, path] of Object.entries(pages)) await photograph(name, path);
// After the others, which it would appear in.
const reported = await tab.ask<string>(`(async () => {
  const page = new DOMParser().parseFromString(await (await fetch("/app/report")).text(), "text/html");
  const body = new URLSearchParams(new FormData(page.querySelector("main form")));
  for (const [name, value] of Object.entries(${JSON.stringify(long)})) body.set(name, value);
  return new URL((await fetch("/app/report", { method: "POST", body })).url).pathname;
})()`);
await photograph("long", reported);

/** Others' data, or data that was changed since, must not get into the documentation. */
async function requireExample(): Promise<void> {
  const lines = (await Bun.file(join(import.meta.dir, "../trial/example/data/incident.jsonl")).text()).trim();
  const incidents = lines.split("\n").map((line) => JSON.parse(line) as { id: number; title: string });
  const { id, title } = incidents.at(-1)!;
  const [newest, next] = await tab.ask<[string, number]>(`(async () => [
    new DOMParser().parseFromString(await (await fetch("/app/incidents/${id}")).text(), "text/html").title,
    (await fetch("/app/incidents/${id + 1}")).status,
  ])()`);
  if (newest.includes(title) && next === 404) return;
  throw new Error(
    `${server} does not have the example data of a fresh npm start: name the address of one that has`,
  );
}

async function photograph(name: string, path: string): Promise<void> {
  await tab.goto(`${server}${path}`);
  await tab.says("Times are in");
  await until("a live page", () =>
    tab.ask<boolean>("!document.querySelector('.live') || !!document.querySelector('.live.on')"),
  );
  for (const size of ["desktop", "phone"] as const)
    for (const scheme of ["light", "dark"] as const) {
      await tab.look(size, scheme);
      await Bun.write(join(folder, `${name}-${size}-${scheme}.webp`), await tab.screenshot("webp"));
    }
}

await closeChromium();
process.exit(0);
