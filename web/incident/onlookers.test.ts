import { beforeEach, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { h } from "preact";
import { accessLease, recommendation } from "../../drizzle/schema/index.ts";
import type { Deps } from "../../server/deps.ts";
import { fieldsOf, PageReader } from "../../tests/support/browser/reader.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import { insertAccess } from "../../tests/support/http/permission_access.ts";
import type { Visitor } from "../visitor.ts";
import { Onlookers } from "./onlookers.tsx";

let given: IncidentServer;
useIncidentServer(
  (all) => {
    given = all;
  },
  { rateGenerate: 100_000 },
);

let id: number;
let path: string;
/** They look on, and carol has reported it. */
let [dana, erin, carol]: PageReader[] = [];
beforeEach(async () => {
  ({ id } = await given.reported());
  path = `/app/incidents/${id}`;
  dana = await PageReader.signIn(given.server, "dana@example.com");
  erin = await PageReader.signIn(given.server, "erin@example.com");
  carol = await PageReader.signIn(given.server);
});

const note = (text: string) => given.admin.call("POST", `/incidents/${id}/events/`, { description: text });
const page = async (reader = dana!) => (await reader.open(path)).html;

test("has the tokens and keys of its reader", async () => {
  const [one, other] = [await page(), await page(erin)];
  const [mine, theirs] = [one, other].map((html) => fieldsOf(html, `${path}/note`));
  expect(mine!.csrf).not.toBe(theirs!.csrf);
  expect(other).not.toContain(mine!.csrf!);
  const keys = [one, other].flatMap((html) => [...html.matchAll(/name="key" value="([^"]+)"/g)]);
  expect(new Set(keys.map(([, key]) => key)).size).toBe(keys.length);
  expect(other).not.toContain("dana@example.com");
  expect((await erin!.send(`${path}/note`, { ...theirs!, text: "Seen" })).html).toContain("Seen");
});

test("shows what happened before it was asked for", async () => {
  await page();
  await note("First");
  expect(await page()).toContain("First");
  await note("Second");
  expect(await page(erin)).toContain("Second");
});

test("is another one for those who take part, did something, or are admins", async () => {
  await page();
  expect(await page(carol)).not.toContain(`action="${path}/join"`);
  expect(await page(erin)).toContain(`action="${path}/join"`);
  await erin!.submit(`${path}/note`, { text: "Mine" });
  expect(await page(erin)).toContain("/amend?entry=");
  expect(await page()).not.toContain("/amend?entry=");
  const root = await PageReader.signIn(given.server, "root@example.com", ["admin"]);
  expect(await root.open(path)).toMatchObject({ html: expect.stringContaining(`${path}/delete`) });
});

test("shows a Restricted incident that it is linked with to its people only", async () => {
  const hidden = await given.reported("Stolen keys", { visibility: "Restricted" });
  await given.member.call("POST", `/incidents/${id}/links/`, {
    incident: String(hidden.id),
    kind: "related",
  });
  await given.member.call("POST", `/incidents/${hidden.id}/participants/`, { email: "erin@example.com" });
  expect(await page()).not.toContain("Stolen keys");
  expect(await page(erin)).toContain("Stolen keys");
  expect(await page()).not.toContain("Stolen keys");
});

test("shows a recommended document of a Restricted incident to its people only", async () => {
  const { db, clock } = given.server;
  const hidden = await given.reported("Stolen keys", { visibility: "Restricted" });
  const wanted = {
    name: "Secret runbook",
    description: "",
    resource_type: "reference",
    incident_id: hidden.id,
  };
  const { body: made } = await given.member.call("POST", "/documents/", wanted);
  const proposed = { incidentId: id, pluginSlug: "resolver", documentId: made.id, createdAt: clock.now() };
  await db.insert(recommendation).values({ ...proposed, reasons: [{ kind: "other", name: "asked" }] });
  await given.member.call("POST", `/incidents/${hidden.id}/participants/`, { email: "erin@example.com" });
  expect(await page()).not.toContain("Secret runbook");
  expect(await page(erin)).toContain("Secret runbook");
});

test("has a lease of its reader", async () => {
  const { db } = given.server;
  const slug = `quokka-${id}`;
  await insertAccess(db, slug);
  const { name: incidentName } = (await given.admin.call("GET", `/incidents/${id}`)).body;
  const lease = { userName: "dana@example.com", incidentId: id, incidentName };
  await db
    .update(accessLease)
    .set(lease)
    .where(eq(accessLease.name, `svc_${slug}`));
  await page(erin);
  expect(await page()).toContain(slug);
  expect(await page(erin)).not.toContain(slug);
});

test("is gone at once when the incident becomes Restricted", async () => {
  await page();
  const { body } = await given.member.call("GET", `/incidents/${id}`);
  const { title, description, status, incident_type_id, incident_priority_id, resolution, version } = body;
  const kept = { title, description, status, incident_type_id, incident_priority_id, resolution, version };
  const { http } = await given.member.call("PUT", `/incidents/${id}`, { ...kept, visibility: "Restricted" });
  expect(http).toBe(200);
  expect((await dana!.open(path)).status).toBe(404);
  expect((await carol!.open(path)).status).toBe(200);
});

test("is read once for many who ask at the same time, and again after an event", async () => {
  let reads = 0;
  const onlookers = new Onlookers(given.server as unknown as Deps, async () => {
    reads += 1;
    return { title: "", names: new Map(), involved: new Set(["dana@example.com"]), content: h("p", null) };
  });
  const ask = (user: string) => {
    const actor = { kind: "user", user, groups: [], admin: false, expiresAt: new Date() } as const;
    return onlookers.pageOf({ actor, timeZone: "UTC", csrf: "c" } as unknown as Visitor, id);
  };
  const pages = await Promise.all(Array.from({ length: 20 }, () => ask("erin@example.com")));
  expect([reads, ...pages.map((page) => page?.pieces)]).toMatchObject([
    1,
    ...pages.map(() => [{ text: "<p></p>" }]),
  ]);
  expect([await ask("dana@example.com"), reads]).toEqual([undefined, 1]);
  await note("Something");
  await ask("erin@example.com");
  expect(reads).toBe(2);
});
