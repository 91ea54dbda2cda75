import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { desc, eq, sql } from "drizzle-orm";
import { audit } from "../core/audit.ts";
import { databaseClock } from "../core/database_clock.ts";
import { claimDue, claimNow } from "../core/schedule/claims.ts";
import { pauseTask, resumeTask } from "../core/schedule/operate.ts";
import { finishRun } from "../core/schedule/runs.ts";
import { findTask, scheduledTasks } from "../core/schedule/tasks.ts";
import {
  auditLog,
  delivery,
  flowStep,
  incidentPriority,
  incidentType,
  run,
  scheduledTask,
  service,
  term,
  token,
} from "../drizzle/schema/index.ts";
import { after } from "../platform/clock.ts";
import { fieldsOf, PageReader, textOf } from "../tests/support/browser/reader.ts";
import { type IncidentServer, useIncidentServer } from "../tests/support/http/incident_server.ts";

let given: IncidentServer;
useIncidentServer(
  (all) => {
    given = all;
  },
  { rateGenerate: 100_000, pluginConversation: "channel" },
);

let root: PageReader;
let carol: PageReader;
beforeAll(async () => {
  root = await PageReader.signIn(given.server, "root@example.com", ["admin"]);
  carol = await PageReader.signIn(given.server);
});

const shown = async (path: string) => {
  const { status, html } = await root.open(path);
  expect([path, status]).toEqual([path, 200]);
  return textOf(html);
};
/** By the order of writing: the times of tests differ. */
const lastAudit = async () => {
  const { actor, action, subject } = auditLog;
  const newest = given.server.db.select({ actor, action, subject }).from(auditLog);
  return (await newest.orderBy(desc(auditLog.id)).limit(1))[0];
};

const pages = [
  "",
  "/audit",
  "/audit/download/csv",
  "/audit/download/jsonl",
  "/schedule",
  "/plugins",
  "/work",
  "/sign-ins",
  "/sign-ins/end",
  "/catalog",
  "/catalog/types",
  "/catalog/types/new",
];
const forms: [string, Record<string, string>][] = [
  ["/schedule", { task: "term-sync" }],
  ["/sign-ins", { sign_in: crypto.randomUUID() }],
  ["/sign-ins/end", { user: "dana" }],
  ["/work", { work: "INC-1/reported:documents" }],
  ["/catalog/terms/new", { text: "By a member" }],
];

describe("only admins", () => {
  test("see the link and the pages; others get 403 and no data, and are not led to the sign-in", async () => {
    const subject = `secret-${crypto.randomUUID()}`;
    await audit(given.server.db, {
      at: given.server.clock.now(),
      actor: "system",
      action: "task.deleted",
      subject,
    });
    const link = 'href="/app/admin"';
    expect(await shown("/app")).toContain(link);
    expect((await carol.open("/app")).html).not.toContain(link);
    expect(await shown("/app/admin/audit")).toContain(subject);
    for (const page of pages) {
      const path = `/app/admin${page}`;
      expect((await root.open(path)).status).toBe(200);
      const refused = await carol.open(path);
      expect([refused.path, refused.status]).toEqual([path, 403]);
      expect(refused.html).toContain("Only admins can open the administration");
      for (const secret of [subject, "term-sync", "postgresql-role"])
        expect(refused.html).not.toContain(secret);
    }
  });

  test.each(forms)("can send the form of %s", async (page, fields) => {
    const { csrf } = fieldsOf((await carol.open("/app/report")).html, "/app/report") as { csrf: string };
    const done = () => given.server.db.$count(auditLog);
    const before = await done();
    const { status } = await carol.send(`/app/admin${page}`, { csrf, key: crypto.randomUUID(), ...fields });
    expect([status, await done()]).toEqual([403, before]);
  });

  test("every page of the administration is on its first page", async () => {
    const html = await shown("/app/admin");
    for (const page of ["audit", "schedule", "plugins", "work", "catalog", "roles", "sign-ins"])
      expect(html).toContain(`href="/app/admin/${page}"`);
  });
});

describe("the catalog", () => {
  const api = async (path: string) => (await given.admin.call("GET", path)).body;
  const newest = async (path: string) => (await api(`${path}?sort=-id&limit=1`)).items[0];
  const catalog = "/app/admin/catalog";

  test.each([
    [
      "types",
      "/incident_types/",
      { name: "Flood", visibility: "Restricted", postmortem: "on" },
      { postmortem: true },
    ],
    ["priorities", "/incident_priorities/", { name: "Low", rank: "-3", reminderHours: "48" }, { rank: -3 }],
    ["services", "/services/", { name: "Storage", pluginSlug: "roster" }, { plugin_slug: "roster" }],
    ["teams", "/teams/", { name: "Night", email: "night@example.com" }, { email: "night@example.com" }],
    ["people", "/individuals/", { name: "Nina", email: "nina" }, { email: "nina@example.com" }],
    ["terms", "/terms/", { text: "failover", discoverable: "on" }, { discoverable: true }],
    ["definitions", "/definitions/", { text: "The standby takes over" }, {}],
    ["applications", "/applications/", { name: "Shop", uri: "https://shop.example.com" }, {}],
  ])("%s are added, changed and deleted", async (kind, path, fields, stored) => {
    const list = `${catalog}/${kind}`;
    const added = await root.submit(`${list}/new`, fields);
    expect(added.path).toBe(list);
    const record = await newest(path);
    expect(record).toMatchObject(stored);
    const [first = "", text = ""] = Object.entries(fields)[0]!;
    expect(textOf(added.html)).toContain(text);
    const page = `${list}/${record.id}`;
    const stale = fieldsOf((await root.open(page)).html, page);
    await root.submit(page, { [first]: `${text} <b>` });
    expect(await api(`${path}${record.id}`)).toMatchObject({ ...stored, [first]: `${text} <b>`, version: 2 });
    const conflict = await root.send(page, { ...stale, [first]: "Mine" });
    expect([conflict.status, conflict.html]).toEqual([409, expect.stringContaining("Mine")]);
    expect((await root.submit(`${page}/delete`, {}, `${page}/delete`)).path).toBe(list);
    expect((await given.admin.call("GET", `${path}${record.id}`)).http).toBe(404);
    expect(await lastAudit()).toMatchObject({ actor: "root@example.com", subject: String(record.id) });
  });

  test("what a form does not have stays, and what refers to a record keeps it", async () => {
    const { id: document } = (
      await given.admin.call("POST", "/documents/", { name: "T", resource_type: "template" })
    ).body;
    const templates = [{ resource_type: "review", document_id: document }];
    const { body } = await given.admin.call("POST", "/incident_types/", {
      name: "With a template",
      templates,
    });
    const page = `${catalog}/types/${body.id}`;
    expect(await shown(page)).toContain(`href="/app/documents/${document}"`);
    await root.submit(page, { description: "Changed" });
    expect(await api(`/incident_types/${body.id}`)).toMatchObject({ description: "Changed", templates });
    const names = Array.from({ length: 101 }, (_, n) => ({ name: `Service ${String(n).padStart(3, "0")}` }));
    const stamps = { createdAt: given.server.clock.now(), updatedAt: given.server.clock.now() };
    const made = await given.server.db
      .insert(service)
      .values([...names, { name: "Zzz" }].map((one) => ({ ...one, ...stamps })))
      .returning({ id: service.id });
    const last = made.at(-1)!.id;
    const { version, ...type } = await api(`/incident_types/${body.id}`);
    const called = { ...type, commander_service_id: last, version };
    expect((await given.admin.call("PUT", `/incident_types/${body.id}`, called)).http).toBe(200);
    await root.submit(page, { description: "Again" });
    expect(await api(`/incident_types/${body.id}`)).toMatchObject({
      description: "Again",
      commander_service_id: last,
    });
    const used = `${catalog}/types/${given.ids.incidentTypeId}/delete`;
    const refused = await root.submit(used, {}, used);
    expect([refused.status, refused.html]).toEqual([409, expect.stringContaining('role="alert"')]);
  });

  test("a rotation and the reasons of a team are shown, reasons are set by boxes, and saving keeps the rest", async () => {
    const call = async (method: string, at: string, body: object) =>
      (await given.admin.call(method, at, body)).body;
    const type = await call("POST", "/incident_types/", { name: "Fire" });
    // The list has a hundred: this one has no box.
    const stamps = { createdAt: given.server.clock.now(), updatedAt: given.server.clock.now() };
    const texts = Array.from({ length: 100 }, (_, n) => ({
      text: `a word ${n}`,
      discoverable: false,
      ...stamps,
    }));
    await given.server.db.insert(term).values(texts);
    const unlisted = await call("POST", "/terms/", { text: "zzz" });
    const made = await call("POST", "/teams/", { name: "Firefighters", term_ids: [unlisted.id] });
    const page = `${catalog}/teams/${made.id}`;
    expect((await shown(page)).replaceAll(/<[^>]+>/g, "")).toContain("For incidents of type Fire");
    await root.submit(page, { [`incidentTypeIds-${type.id}`]: "on" });
    const reasons = { incident_type_ids: [type.id], term_ids: [unlisted.id] };
    expect(await api(`/teams/${made.id}`)).toMatchObject(reasons);
    await root.submit(page, { description: "Ticked boxes stay" });
    expect(await api(`/teams/${made.id}`)).toMatchObject({ ...reasons, description: "Ticked boxes stay" });
    const { [`incidentTypeIds-${type.id}`]: _, ...unticked } = fieldsOf((await root.open(page)).html, page);
    await root.send(page, unticked);
    expect(await api(`/teams/${made.id}`)).toMatchObject({ ...reasons, incident_type_ids: [] });
    const person = await call("POST", "/individuals/", { name: "Rota", email: "rota@example.com" });
    const rotation = {
      starts_at: "2026-11-02T09:00:00.000Z",
      shift_hours: 12,
      members: [person.id, person.id],
    };
    const onCall = await call("POST", "/services/", { name: "Rotating", plugin_slug: "roster", rotation });
    const html = await shown(`${catalog}/services/${onCall.id}`);
    expect(html.split(`href="${catalog}/people/${person.id}" dir="auto">Rota<`)).toHaveLength(3);
    expect(html).toContain("12 hours each");
    await root.submit(`${catalog}/services/${onCall.id}`, { description: "Changed" });
    expect(await api(`/services/${onCall.id}`)).toMatchObject({ description: "Changed", rotation });
  });

  test("the boxes that were shown decide, whichever records are the first hundred by then", async () => {
    const { db, clock } = given.server;
    const stamps = { createdAt: clock.now(), updatedAt: clock.now(), discoverable: false };
    const texts = Array.from({ length: 101 }, (_, n) => ({ text: `0${1000 + n}`, ...stamps }));
    const ids = (await db.insert(term).values(texts).returning({ id: term.id })).map(({ id }) => id);
    const [unticked = 0, ticked = 0] = ids;
    const unlisted = ids.at(-1)!;
    const linked = { name: "Shifting", term_ids: [unticked, unlisted] };
    const { id } = (await given.admin.call("POST", "/teams/", linked)).body;
    const page = `${catalog}/teams/${id}`;
    const termsOf = async () => (await api(`/teams/${id}`)).term_ids;
    const rename = (one: number, text: string) => db.update(term).set({ text }).where(eq(term.id, one));
    const sent = fieldsOf((await root.open(page)).html, page);
    expect([sent[`termIds-${unticked}`], sent[`termIds-${unlisted}`]]).toEqual(["on", undefined]);
    delete sent[`termIds-${unticked}`];
    sent[`termIds-${ticked}`] = "on";
    await rename(unlisted, "00");
    await rename(unticked, "09");
    const refused = await root.send(page, { ...sent, name: " " });
    // What is shown again has other boxes: a new one as it is stored.
    expect(refused.status).toBe(400);
    const again = fieldsOf(refused.html, page);
    expect([again[`termIds-${ticked}`], again[`termIds-${unlisted}`]]).toEqual(["on", "on"]);
    await root.send(page, { ...sent, key: crypto.randomUUID() });
    expect(await termsOf()).toEqual([ticked, unlisted]);
    await rename(unlisted, "08");
    // A list of boxes that no form has sent.
    await root.submit(page, { "termIds-boxes": `x ${Number.MAX_VALUE} <b> -1  0` });
    expect(await termsOf()).toEqual([ticked, unlisted]);
    const unknown = await root.submit(page, { "termIds-999999": "on" });
    expect([unknown.status, unknown.html]).toEqual([
      400,
      expect.stringContaining("a record that does not exist"),
    ]);
  });

  test("a team is saved with every box of three lists of a hundred", async () => {
    const { db, clock } = given.server;
    const stamps = { createdAt: clock.now(), updatedAt: clock.now() };
    const names = Array.from({ length: 100 }, (_, n) => `000 ${n}`);
    await db.insert(incidentType).values(names.map((name) => ({ name, ...stamps })));
    await db.insert(incidentPriority).values(names.map((name) => ({ name, reminderHours: 1, ...stamps })));
    await db.insert(term).values(names.map((text) => ({ text, discoverable: false, ...stamps })));
    const { id } = (await given.admin.call("POST", "/teams/", { name: "For everything" })).body;
    const page = `${catalog}/teams/${id}`;
    const boxes = [...(await shown(page)).matchAll(/name="(\w+Ids-\d+)"/g)].map(([, name]) => [name, "on"]);
    expect(boxes).toHaveLength(300);
    expect((await root.submit(page, Object.fromEntries(boxes))).path).toBe(`${catalog}/teams`);
    const { term_ids, incident_type_ids, incident_priority_ids } = await api(`/teams/${id}`);
    expect([term_ids, incident_type_ids, incident_priority_ids].map((ids) => ids.length)).toEqual([
      100, 100, 100,
    ]);
  });

  test("a page reads no list that it does not show", async () => {
    const { db } = given.server;
    await db.transaction(async (tx) => {
      await tx.execute(
        sql`lock table service, incident_type, incident_priority, term in access exclusive mode`,
      );
      for (const at of ["", "/applications", "/applications/new"])
        expect([at, (await root.open(`${catalog}${at}`)).status]).toEqual([at, 200]);
    });
  });

  test.each([
    ["a name that another one has", "types/new", { name: "Outage" }, 409],
    ["no number", "priorities/new", { name: "Odd", rank: "high", reminderHours: "1" }, 400],
    ["no name", "teams/new", { name: " " }, 400],
    ["an unknown visibility", "types/new", { name: "Odd", visibility: "Hidden" }, 400],
  ])("%s is refused, and what was written is kept", async (_, at, fields, status) => {
    const answer = await root.submit(`${catalog}/${at}`, { ...fields, description: "Half an hour" });
    expect([answer.status, answer.html]).toEqual([status, expect.stringContaining("Half an hour")]);
  });

  test("there is nothing else", async () => {
    for (const at of ["constructor", "types/987654", "types/x", "types/new/delete"])
      expect([at, (await root.open(`${catalog}/${at}`)).status]).toEqual([at, 404]);
  });
});

describe("the audit log", () => {
  const at = (minute: number) => new Date(Date.UTC(2026, 10, 20, 12, minute));
  beforeEach(async () => {
    const { db } = given.server;
    await db.delete(auditLog);
    const by = { actor: "carol@example.com", action: "token.revoked" } as const;
    for (let minute = 0; minute < 60; minute += 1)
      await audit(db, { at: at(minute), ...by, subject: `t${minute}.` });
    await audit(db, {
      at: at(60),
      actor: "system",
      action: "task.deleted",
      subject: '=1+"2"',
      data: { task_id: 7 },
    });
  });

  test("is filtered in the address, and continues by a cursor with the same filters", async () => {
    const all = await shown("/app/admin/audit");
    for (const text of ["task_id: 7", "t59.", "system"]) expect(all).toContain(text);
    const first = await shown("/app/admin/audit?actor=carol&action=&since=2026-11-20+12:05");
    expect(first).not.toContain("task_id");
    expect(first).toContain("t10.");
    expect(first).not.toContain("t9.");
    const second = await shown(first.match(/href="([^"]+)">Older</)![1]!);
    expect(second.match(/t\d+\./g)).toEqual(["t9.", "t8.", "t7.", "t6.", "t5."]);
    expect(await shown("/app/admin/audit?subject=nothing")).toContain("No entry matches these filters");
  });

  test("takes days of the reader's time zone, and includes them", async () => {
    const found = async (query: string) =>
      (await shown(`/app/admin/audit?subject=t9.&${query}`)).includes("t9.</td>");
    for (const [query, expected] of [
      ["since=2026-11-20&until=2026-11-20", true],
      ["since=2026-11-21", false],
      ["until=2026-11-19", false],
    ] as const)
      expect([query, await found(query)]).toEqual([query, expected]);
  });

  test.each([
    ["action=shouted", "Choose one of the list"],
    ["actor=a+b", "The user name must look like name@example.com"],
    ["since=2026-02-30+12:00", "There is no such time"],
    ["until=2h", "The field until must be a time such as"],
    ["cursor=x", "cursor"],
  ])("shows the filters again with the reason: %s", async (query, reason) => {
    const { status, html } = await root.open(`/app/admin/audit?subject=mine&${query}`);
    expect([status, html]).toEqual([
      200,
      expect.stringMatching(new RegExp(`role="alert"[^>]*><p>[^<]*${reason}`)),
    ]);
    expect(html).toContain('value="mine"');
    const [name, typed] = [...new URLSearchParams(query)][0]!;
    if (name !== "cursor" && name !== "action") expect(html).toContain(`value="${typed}"`);
    for (const other of ["t9.", "No entry", "download/"]) expect(html).not.toContain(other);
    const file = `/app/admin/audit/download/csv?${query.replace("cursor", "action")}`;
    expect((await root.open(file)).status).toBe(400);
  });

  test("is a file with all entries that the filters select", async () => {
    const link = (await shown("/app/admin/audit?actor=carol%40example.com")).match(
      /href="([^"]+csv[^"]+)"/,
    )![1]!;
    const csv = await root.open(link);
    expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(csv.headers.get("content-disposition")).toBe("attachment; filename*=UTF-8''audit.csv");
    const lines = csv.html.split("\r\n");
    expect(lines).toHaveLength(62);
    expect(lines[0]).toBe("at,actor,action,subject,address,data");
    expect(lines[1]).toBe("2026-11-20T12:59:00.000Z,carol@example.com,token.revoked,t59.,,{}");
    // More than one page of what is read at once.
    const { db } = given.server;
    const more = { at: at(0), actor: "x", action: "token.revoked" };
    await db.insert(auditLog).values(Array.from({ length: 500 }, () => more));
    const whole = await root.open("/app/admin/audit/download/csv");
    // With the entry of the export before.
    expect(whole.html.split("\r\n")).toHaveLength(1 + 562 + 1);
    // No spreadsheet runs it.
    expect(whole.html).toContain(`,"'=1+""2""",,"{""task_id"":7}"`);
    const jsonl = (await root.open("/app/admin/audit/download/jsonl?actor=system")).html;
    expect(
      jsonl
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual([
      expect.objectContaining({ actor: "system", subject: '=1+"2"', address: null, data: { task_id: 7 } }),
    ]);
    expect((await root.open("/app/admin/audit/download/xml")).status).toBe(404);
    const url = `${given.server.url}/app/admin/audit/download/csv`;
    expect((await root.browser.request(url, { method: "HEAD" })).status).toBe(200);
    await root.open("/app/admin/audit/download/csv?actor=nobody&note=of+a+stranger");
    const exports = await db.select().from(auditLog).where(eq(auditLog.action, "audit.exported"));
    expect(exports.map(({ actor, data }) => [actor, data])).toEqual([
      ["root@example.com", { actor: "carol@example.com" }],
      ["root@example.com", {}],
      ["root@example.com", { actor: "system" }],
      ["root@example.com", { actor: "nobody" }],
    ]);
    expect(exports[0]!.address).not.toBeNull();
  });
});

describe("the schedule", () => {
  const path = "/app/admin/schedule";
  const task = findTask("term-sync")!;
  const as = (owner: string) => ({
    ...{ db: given.server.db, databaseClock, config: given.server.config },
    ...{ owner, leaseSeconds: 30 },
  });
  beforeEach(async () => {
    await given.server.db.delete(run);
    await given.server.db.delete(scheduledTask);
  });

  test("shows each task with its timing, its last run, its failures and its next slot", async () => {
    const result = { done: 3, skipped: 2, failed: 1 };
    await finishRun(as("a"), await claimNow(as("a"), task), { result, faults: [] });
    const failed = await claimNow(as("a"), findTask("application-sync")!);
    await finishRun(as("a"), failed, { error: "no <source> answered", faults: [] });
    await pauseTask({ ...as("a"), clock: given.server.clock }, "incident-task-sync");
    const html = await shown(path);
    for (const { name } of scheduledTasks) expect(html).toContain(`<b>${name}</b>`);
    for (const text of [
      "every 1:00:00",
      "daily at 18:00",
      "3 done, 2 skipped, 1 failed",
      "by hand",
      "paused",
    ])
      expect(html).toContain(text);
    expect(html).toContain("no <source> answered");
    expect(html).toContain("no worker was seen");
  });

  test("starts a task once, which a worker then runs, and says who asked for it", async () => {
    const page = await root.submit(path, { task: task.name });
    expect([page.status, page.path]).toEqual([200, path]);
    expect(page.html).toContain("Waits for a worker");
    expect(await lastAudit()).toEqual({
      actor: "root@example.com",
      action: "scheduled_task.started",
      subject: "term-sync",
    });
    const { claim } = (await claimDue(as("worker"), task)) as Extract<
      Awaited<ReturnType<typeof claimDue>>,
      { claim: unknown }
    >;
    expect(claim).toMatchObject({ task: "term-sync", trigger: "eager", owner: "worker" });
    expect(await claimDue(as("other"), task)).not.toHaveProperty("claim");
    await finishRun(as("worker"), claim, { faults: [] });
    expect(await given.server.db.$count(run)).toBe(1);
  });

  test("refuses a task that runs, is paused, or does not exist", async () => {
    const refused = async (name: string) => {
      const page = await root.submit(path, { task: name });
      return [page.status, page.html.match(/role="alert"[^>]*><p>([^<]+)/)?.[1]];
    };
    await claimNow(as("a"), task);
    expect(await refused("term-sync")).toEqual([409, "term-sync is already running: svc scheduler status."]);
    const operator = { ...as("a"), clock: given.server.clock };
    await pauseTask(operator, "application-sync");
    expect(await refused("application-sync")).toEqual([
      409,
      "application-sync is paused: svc scheduler resume application-sync.",
    ]);
    await resumeTask(operator, "application-sync");
    expect(await refused("make-coffee")).toEqual([400, "Choose one of the list."]);
    expect(await given.server.db.$count(run)).toBe(1);
  });
});

describe("deliveries and steps", () => {
  const path = "/app/admin/work";
  const stateOf = async (key: string) =>
    (await given.server.db.select().from(delivery).where(eq(delivery.key, key)))[0]?.state;

  test("show what is not done, and retry what is dead", async () => {
    const { db, clock } = given.server;
    const key = "t/<dead>/channel";
    await db.insert(delivery).values({
      ...{
        key,
        task: "t",
        incidentId: given.ids.incidentId,
        about: [],
        pluginSlug: "channel",
        state: "Dead",
      },
      ...{ subject: "secret", text: "secret text", queuedAt: clock.now(), finishedAt: clock.now() },
      ...{ attempts: 9, error: "refused <it>" },
    });
    const html = await shown(path);
    for (const text of [key, "refused <it>"]) expect(html).toContain(text);
    expect(html).not.toContain("secret text");
    expect(await shown("/app/admin/plugins")).toContain("1 unsent, the newest: refused <it>");
    const done = await root.submit(path, { work: key });
    expect([done.status, done.path, await stateOf(key)]).toEqual([200, path, "Queued"]);
    expect(await lastAudit()).toEqual({ actor: "root@example.com", action: "delivery.resent", subject: key });
  });

  test("retry a failed step, and refuse what is not dead or not there", async () => {
    const { id, name } = await given.reported();
    const { db } = given.server;
    const key = `${name}/failing`;
    await db.insert(flowStep).values({ incidentId: id, step: "failing", state: "Failed", error: "down" });
    const retried = await root.submit(path, { work: key });
    expect([retried.status, retried.path]).toEqual([200, path]);
    expect(await lastAudit()).toEqual({ actor: "root@example.com", action: "step.retried", subject: key });
    const { csrf } = fieldsOf((await root.open("/app/report")).html, "/app/report") as { csrf: string };
    for (const [work, status, reason] of [
      ["nothing", 404, "There is no such work"],
      ["t/<dead>/channel", 409, "Only a dead delivery can be sent again"],
    ] as const) {
      const refused = await root.send(path, { csrf, key: crypto.randomUUID(), work });
      expect([work, refused.status]).toEqual([work, status]);
      expect(refused.html).toContain(reason);
    }
  });
});

test("sign-ins are listed, filtered and ended, one or all of a user", async () => {
  const path = "/app/admin/sign-ins";
  const user = `dana-${crypto.randomUUID()}@example.com`;
  const dana = [await PageReader.signIn(given.server, user), await PageReader.signIn(given.server, user)];
  const open = async () =>
    Promise.all(dana.map(async ({ browser }) => (await browser.request(`${given.server.url}/app`)).status));
  const ended = async () => ({ ...(await lastAudit()), subject: undefined });
  expect(await shown(path)).toContain(user);
  const filtered = `${path}?user=${encodeURIComponent(user)}`;
  const end = (fields = {}) => root.submit(filtered, fields, filtered);
  expect(await shown(filtered)).not.toContain("root@example.com, browser");
  const refused = await shown(`${path}?user=a+b`);
  for (const text of ["The user name must look like name@example.com", 'value="a b"'])
    expect(refused).toContain(text);
  expect(refused).not.toContain("Nobody is signed in");
  expect((await end()).path).toBe(filtered);
  expect((await open()).toSorted()).toEqual([200, 303]);
  expect(await ended()).toMatchObject({ actor: "root@example.com", action: "sign_in.ended" });
  const gone = await end({ sign_in: crypto.randomUUID() });
  expect([gone.status, gone.html]).toEqual([404, expect.stringContaining("There is no such sign-in")]);
  for (const id of ["", "7"]) expect((await end({ sign_in: id })).status).toBe(404);

  const ofOrganisation = crypto.randomUUID().replace(/^(.{14})./, "$18");
  const now = given.server.clock.now();
  const certificate = { jti: ofOrganisation, userName: user, issuedAt: now, expiresAt: after(now, 3600) };
  await given.server.db.insert(token).values(certificate);
  const { html } = await root.open(filtered);
  const [, csrf, key] = html.match(
    /name="csrf" value="([^"]+)"\/?><input type="hidden" name="key" value="([^"]+)"\/?><input type="hidden" name="certificate"/,
  )!;
  const asked = await root.send(filtered, { csrf: csrf!, key: key!, certificate: ofOrganisation });
  expect([asked.status, asked.html]).toEqual([200, expect.stringContaining("This cannot be undone")]);
  const listed = () => shown(filtered).then((text) => text.includes("certificate of your organisation"));
  expect(await listed()).toBe(true);
  expect((await root.send(filtered, fieldsOf(asked.html, filtered))).path).toBe(filtered);
  expect(await listed()).toBe(false);

  const question = filtered.replace("?", "/end?");
  expect((await root.open(filtered)).html).toContain(`href="${question}"`);
  expect(await shown(question)).toContain(`Ends all sign-ins of ${user}`);
  expect((await open()).toSorted()).toEqual([200, 303]);
  expect(textOf((await root.submit(question)).html)).toContain("No sign-ins.");
  expect(await open()).toEqual([303, 303]);
  expect(await ended()).toMatchObject({ actor: "root@example.com", action: "session.signed_out" });
});
