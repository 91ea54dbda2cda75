import { expect, setDefaultTimeout, test } from "bun:test";
import { audit } from "../../core/audit.ts";
import { accessRole, flowStep, run } from "../../drizzle/schema/index.ts";
import type { Tab } from "../support/browser/chromium.ts";
import { useIncidentTab } from "../support/browser/incident_tab.ts";
import type { IncidentServer } from "../support/http/incident_server.ts";
import { newChallenge } from "../support/http/server.ts";
import { until } from "../support/process/until.ts";

/** Every page in a real browser: accessible, on all screens, and under attack. */

setDefaultTimeout(300_000);

let given: IncidentServer;
let tab: Tab;
let id: number;
let path: string;
const { open, isLive } = useIncidentTab((reported) => {
  ({ given, tab, id, path } = reported);
});

const note = (text: string) => given.member.call("POST", `/incidents/${id}/events`, { description: text });

/** What the administration shows: a failed step, a failed run, an access role, and an entry of the audit log. */
async function insertWork(
  incidentId: number,
  { error, name = "reported:none" }: { error: string; name?: string },
) {
  const { db, clock } = given.server;
  const at = clock.now();
  await db.insert(flowStep).values({ incidentId, step: name, state: "Failed", attempts: 9, error });
  const ended = { slot: at, startedAt: at, finishedAt: at, state: "Failed", trigger: "schedule" } as const;
  await db
    .insert(run)
    .values({ task: "term-sync", owner: "a", ...ended, error })
    .onConflictDoNothing();
  const role = { description: error, groups: [name], settings: { [name]: error } };
  const fixed = { incidentRequired: false, breakGlass: false, createdAt: at, updatedAt: at };
  await db
    .insert(accessRole)
    .values({
      slug: "shown",
      pluginSlug: "fake",
      approval: "admin",
      defaultDuration: 60,
      maxDuration: 60,
      ...fixed,
      ...role,
    })
    .onConflictDoUpdate({ target: accessRole.slug, set: role });
  const entry = { action: "task.deleted", address: "192.0.2.1" } as const;
  await audit(db, { at, actor: name, ...entry, subject: error, data: { [name]: error } });
}

/** A post-mortem that cites a withdrawn entry with this text. */
async function draftOutdated(incidentId: number, description: string): Promise<void> {
  const of = `/incidents/${incidentId}`;
  const { body } = await given.member.call("POST", `${of}/events`, { description });
  const made = await given.member.call("POST", `${of}/postmortem`, {});
  expect([made.http, made.body.detail]).toEqual([200, undefined]);
  expect((await given.member.call("POST", `${of}/events/${body.id}/withdraw`, { version: 1 })).http).toBe(
    200,
  );
}

test("every page is accessible, light and dark, on a desktop and a phone", async () => {
  const long = `ﻣﺮﺣﺒﺎ שלום ${"Donaudampfschifffahrtsgesellschaftskapitän".repeat(6)}`;
  await given.member.call("POST", `/incidents/${id}/reports/`, {
    conditions: long,
    actions: "b",
    needs: "c",
  });
  await note(long);
  await given.member.call("POST", "/tasks/", {
    incident_id: id,
    description: long,
    assignees: ["carol@example.com"],
  });
  const found = await given.documentOf(id);
  const findings = [];
  await insertWork(id, { error: long });
  const { id: reviewed } = await given.reported(long.slice(0, 200));
  await draftOutdated(reviewed, long);
  for (const [name, at] of [
    ["board", "/app"],
    ["board-empty", "/app?type=999999"],
    ["incident", path],
    ["incident-messages", `${path}?show=messages`],
    ["incident-edit", `${path}/edit`],
    ["incident-affected", `${path}/affected`],
    ["status-report", `${path}/status-report`],
    ["report", "/app/report"],
    ["search", "/app/search?q=broken"],
    ["work", "/app/work"],
    ["profile", "/app/profile"],
    ["access", "/app/access"],
    ["numbers", "/app/numbers?since=2025-01-01&until=2027-12-31"],
    ["numbers-type", "/app/numbers?by=type&since=2025-01-01&until=2027-12-31"],
    ["numbers-empty", "/app/numbers?since=2025-01-01&until=2025-01-02"],
    ["numbers-refused", "/app/numbers?since=2025-01-02&until=2025-01-01"],
    ["access-request", "/app/access/request"],
    ["admin", "/app/admin"],
    ["admin-audit", "/app/admin/audit"],
    ["admin-schedule", "/app/admin/schedule"],
    ["admin-plugins", "/app/admin/plugins"],
    ["admin-work", "/app/admin/work"],
    ["admin-sign-ins", "/app/admin/sign-ins?user=root"],
    ["admin-sign-ins-end", "/app/admin/sign-ins/end?user=root"],
    ["admin-roles", "/app/admin/roles"],
    ["admin-role", "/app/admin/roles/shown"],
    ["admin-role-delete", "/app/admin/roles/shown/delete"],
    ["admin-role-disable", "/app/admin/roles/shown/disable"],
    ["admin-catalog", "/app/admin/catalog/types"],
    ["admin-team", "/app/admin/catalog/teams/new"],
    ["admin-definitions", "/app/admin/catalog/definitions"],
    ["admin-type", "/app/admin/catalog/types/new"],
    ["admin-service", `/app/admin/catalog/services/${given.ids.serviceId}`],
    ["document", `/app/documents/${found.id}`],
    ["document-edit", `/app/documents/${found.id}/edit`],
    ["document-versions", `/app/documents/${found.id}/versions`],
    ["document-redact", `/app/documents/${found.id}/redact`],
    ["message", `${path}/say`],
    ["redacted", `${path}/redacted/1?plugin=slack&document=${found.id}`],
    ["postmortem-draft", `${path}/postmortem`],
    ["postmortem-review", `/app/incidents/${reviewed}/postmortem`],
    ["task", `${path}/task`],
    ["help", "/app/help"],
    ["no-incident", "/app/incidents/987654"],
    ["signed-out", "/app/signed_out"],
  ] as const) {
    await open(at);
    findings.push(...(await tab.inspect(name)));
  }
  await given.server.db.transaction(async (tx) => {
    await tx.execute("lock table session in access exclusive mode");
    await open(path);
    expect(await tab.status()).toBe(503);
    findings.push(...(await tab.inspect("slow")));
  });
  await open(`${path}/edit`);
  await tab.fill("#field-impact_start", "never");
  await tab.click(".fields .primary");
  await until("the error", () => tab.ask<boolean>("!!document.querySelector('[role=alert]')"));
  findings.push(...(await tab.inspect("invalid")));
  expect(findings).toEqual([]);
});

/** What runs a script, breaks out of an attribute, or asks another origin, in some context of HTML. */
const payloads = [
  "<script>hit()</script>",
  "<img src=x onerror=hit()>",
  "<svg onload=hit()>",
  '"><script>hit()</script>',
  "'><img src=x onerror=hit()>",
  '" onfocus=hit() autofocus x="',
  "' onmouseover=hit() x='",
  "</textarea><script>hit()</script>",
  "</title><script>hit()</script>",
  "</option></select><script>hit()</script>",
  "</style><script>hit()</script>",
  "</script><script>hit()</script>",
  "<!--><script>hit()</script>-->",
  "<details open ontoggle=hit()>",
  "<body onload=hit()>",
  '<iframe srcdoc="<script>parent.hit()</script>">',
  '<iframe src="javascript:parent.hit()">',
  '<object data="javascript:hit()">',
  '<embed src="https://evil.example/x">',
  '<base href="https://evil.example/">',
  '<meta http-equiv=refresh content="0;url=https://evil.example/">',
  '<link rel=stylesheet href="https://evil.example/x.css">',
  "<form action=https://evil.example><button>x</button></form>",
  '<a href="javascript:hit()">x</a>',
  "[x](javascript:hit())",
  "[x](JaVaScRiPt:hit())",
  "[x](java\tscript:hit())",
  "[x](&#106;avascript:hit())",
  "![x](https://evil.example/x.png)",
  '![x](x"onerror="hit())',
  '<https://evil.example/"onclick="hit()>',
  'https://evil.example/"onclick=hit()',
  "https://evil.example/'><script>hit()</script>",
  "javascript:hit()",
  "data:text/html,<script>hit()</script>",
  "{{constructor.constructor('hit()')()}}",
  "$" + "{hit()}",
  "<%= hit() %>",
  "&lt;script&gt;hit()&lt;/script&gt;",
  "&#60;script&#62;hit()&#60;/script&#62;",
  "\u003cscript\u003ehit()\u003c/script\u003e",
  "<scr\u0000ipt>hit()</scr\u0000ipt>".replaceAll("\u0000", ""),
  "<ScRiPt>hit()</ScRiPt>",
  "<script\n>hit()</script\n>",
  "<script/x>hit()</script>",
  "<<script>hit()//<</script>",
  "<input onfocus=hit() autofocus>",
  "<select onfocus=hit() autofocus>",
  "<video><source onerror=hit()>",
  "<audio src=x onerror=hit()>",
  "<marquee onstart=hit()>",
  "<math><mtext></form><form><mglyph><style></math><img src onerror=hit()>",
  '<noscript><p title="</noscript><img src=x onerror=hit()>">',
  "<template><script>hit()</script></template>",
  "<svg><script>hit()</script></svg>",
  "<svg><animate onbegin=hit() attributeName=x dur=1s>",
  '<svg><a xlink:href="javascript:hit()"><text x=20 y=20>x</text></a></svg>',
  "<svg><use href=\"data:image/svg+xml,<svg id='x' xmlns='http://www.w3.org/2000/svg'><script>hit()</script></svg>#x\">",
  "<style>@import 'https://evil.example/x.css'</style>",
  '<p style="background:url(https://evil.example/x)">',
  '<div style="behavior:url(x)">',
  '<table background="https://evil.example/x">',
  "<isindex action=javascript:hit() type=submit>",
  "<button formaction=javascript:hit()>x</button>",
  "<keygen autofocus onfocus=hit()>",
  "<dialog open onclose=hit()><form method=dialog><button>x</button></form></dialog>",
  "<div popover id=x onbeforetoggle=hit()>",
  "<x onclick=hit() tabindex=0 id=x>",
  "<x contenteditable onblur=hit()>",
  "`<img src=x onerror=hit()>`",
  "```\n</code></pre><script>hit()</script>\n```",
  "> <script>hit()</script>",
  "- [ ] <script>hit()</script>",
  "| <script>hit()</script> |\n|---|\n| x |",
  "[ref]: javascript:hit()\n\n[ref]",
  "[x]: <javascript:hit()>\n\n![x]",
  '<a href="vbscript:hit()">x</a>',
  '<a href="data:text/html,hit()" target=_blank>x</a>',
  "\u2028<script>hit()</script>",
  "\u00ad<script>hit()</script>",
  "+ADw-script+AD4-hit()+ADw-/script+AD4-",
  "<a id=hit name=hit>clobbered</a>",
  "<form id=body><input name=dataset></form>",
  "<img name=querySelector>",
  "\r\n\r\n<script>hit()</script>",
  "event: event\ndata: <script>hit()</script>\n\n",
  "*/<script>hit()</script>/*",
  "]]><script>hit()</script>",
  '<?xml version="1.0"?><script>hit()</script>',
  '<xss style="animation-name:x" onanimationstart=hit()>',
  '<a href="/app/sign_out">x</a>',
  '<button form=say formaction="https://evil.example">x</button>',
  "<input form=say name=text value=x>",
  "<textarea form=say name=csrf>x</textarea>",
  '<link rel=prefetch href="https://evil.example/x">',
  '<link rel=preload as=script href="https://evil.example/x">',
  '<img srcset="https://evil.example/x 1x">',
  "<script type=module>hit()</script>",
  "<script type=importmap>{}</script>",
  '<portal src="https://evil.example">',
];

test("a hundred attacks in every text run nothing, and ask nobody else", async () => {
  expect(payloads).toHaveLength(100);
  const all = payloads.join("\n");
  // In parts: a line has 500 characters at most.
  const lines = payloads.filter((payload) => !/[\p{Cc}\p{Zl}]/u.test(payload)).slice(0, 100);
  const ids: number[] = [];
  for (let at = 0; at < lines.length; at += 8) {
    const title = lines
      .slice(at, at + 8)
      .join(" ")
      .slice(0, 450);
    ids.push((await given.reported(title, { description: all })).id);
  }
  const [first] = ids;
  await draftOutdated(ids[1]!, all);
  const post = (to: string, body: object) => given.member.call("POST", to, body);
  const at = `/incidents/${first}`;
  const stored = [];
  for (const payload of payloads) stored.push(await post(`${at}/events`, { description: payload }));
  // A few have characters that no text may have.
  expect(stored.filter(({ http }) => http === 201).length).toBeGreaterThan(95);
  const name = lines.join(" ").slice(0, 200);
  const named = [0, 1, 2, 3].map((part) =>
    lines
      .slice(part * 20)
      .join(" ")
      .slice(0, 190),
  );
  const create = async (to: string, body: object) => {
    const { http, body: made } = await given.admin.call("POST", to, body);
    expect([to, http]).toEqual([to, 201]);
    return made as { id: number };
  };
  await create(`${at}/messages/`, { text: all });
  await create(`${at}/reports/`, { conditions: all, actions: all, needs: all });
  await create("/tasks/", { incident_id: first, description: name, assignees: ["carol@example.com"] });
  const wanted = { incident_id: first, name, description: all, resource_type: "reference" };
  const found = await create("/documents/", wanted);
  const type = await create("/incident_types/", { name: named[0], description: all });
  const priority = await create("/incident_priorities/", { name: named[1], rank: 9, reminder_hours: 1 });
  const service = await create("/services/", { name: named[2] });
  const application = await create("/applications/", { name: named[3] });
  const person = await create("/individuals/", { name: named[3], email: "payload@example.com" });
  await create(`${at}/participants/`, { individual_id: person.id, roles: ["liaison"] });
  await create(`${at}/links/`, { incident: String(ids[1]), kind: "related" });
  const put = async (to: string, body: object) =>
    expect((await given.admin.call("PUT", to, body)).http).toBe(200);
  await put(`${at}/affected/`, { service_ids: [service.id], application_ids: [application.id] });
  const { title, description, visibility, version } = (await given.admin.call("GET", at)).body;
  await put(at, {
    ...{ title, description, visibility, version, status: "Closed", resolution: all },
    ...{ incident_type_id: type.id, incident_priority_id: priority.id },
  });
  await given.server.db.delete(run);
  await insertWork(first!, { error: all, name });
  await put(`/documents/${found.id}/content`, { text: all, version: null });
  await tab.ask(`(async () => {
    const page = new DOMParser().parseFromString(await (await fetch("/app/profile")).text(), "text/html");
    const body = new URLSearchParams(new FormData(page.querySelector("main form")));
    body.set("name", ${JSON.stringify(name)});
    return (await fetch("/app/profile", { method: "POST", body })).status;
  })()`);
  const headers = { "user-agent": `${payloads[1]}${payloads[5]}` };
  const terminal = await newChallenge(given.server, { user: "root@example.com", headers });
  await tab.goto(terminal.challengeUrl);
  const watch = `window.hits = 0; window.hit = () => { window.hits += 1; }`;
  const places = [
    "/app",
    "/app?show=all",
    ...ids.map((one) => `/app/incidents/${one}`),
    ...["messages", "reports", "notes", "everything"].map((view) => `/app/incidents/${first}?show=${view}`),
    ...["edit", "close", "affected", "role", "say", "postmortem"].map(
      (action) => `/app/incidents/${first}/${action}`,
    ),
    `/app/incidents/${ids[1]}/postmortem`,
    `/app/documents/${found.id}`,
    `/app/documents/${found.id}/edit`,
    "/app/profile",
    "/app/work",
    ...["type", "priority", "service"].map((by) => `/app/numbers?by=${by}&since=2025-01-01&until=2028-12-31`),
    ...["types", "priorities", "services", "people", "applications", "teams/new"].map(
      (kind) => `/app/admin/catalog/${kind}`,
    ),
    `/app/admin/catalog/types/${type.id}`,
    ...["audit", "schedule", "plugins", "work", "sign-ins", "roles", "roles/shown"].map(
      (page) => `/app/admin/${page}`,
    ),
    ...payloads.map((payload) => `/app/admin/audit?subject=${encodeURIComponent(payload)}`).slice(0, 40),
    ...payloads.map((payload) => `/app/search?q=${encodeURIComponent(payload)}`).slice(0, 40),
    ...payloads.map((payload) => `/app/report?title=${encodeURIComponent(payload)}`).slice(0, 40),
  ];
  await tab.beforeScripts(watch);
  for (const place of places) {
    await open(place);
    const seen = await tab.ask<{ hits: number; strangers: string[]; odd: string[] }>(`({
      hits: window.hits,
      strangers: performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => !name.startsWith(location.origin)),
      odd: [...document.querySelectorAll("script, iframe, object, embed, base, svg, img, style, link, meta[http-equiv], [srcdoc], template")]
        .filter((one) => !(one.matches("head > link, head > script") && new URL(one.href ?? one.src).origin === location.origin))
        // The chart of the numbers, which has only bars.
        .filter((one) => !(location.pathname === "/app/numbers" && one.matches("main > div > figure > svg.chart")
          && !one.querySelector(":not(rect, rect > title)")))
        .map((one) => one.outerHTML),
    })`);
    expect([place, seen]).toEqual([place, { hits: 0, strangers: [], odd: [] }]);
  }
  // As a live change, which the script inserts.
  await open(`/app/incidents/${first}`);
  await isLive();
  await given.member.call("POST", `${at}/events`, { description: `last ${payloads[1]}` });
  await tab.says("last <img");
  expect(await tab.ask<number>("window.hits")).toBe(0);
});
