import { beforeEach, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { conversation, event, incident as incidentTable, session } from "../drizzle/schema/index.ts";
import { clicked } from "../tests/support/browser/browser.ts";
import { fieldsOf, PageReader, textOf } from "../tests/support/browser/reader.ts";
import { somebodyWaits } from "../tests/support/database/blocked.ts";
import { type IncidentServer, useIncidentServer } from "../tests/support/http/incident_server.ts";
import { startTestServer } from "../tests/support/http/server.ts";
import { slowBody } from "../tests/support/http/slow_body.ts";
import { until, within } from "../tests/support/process/until.ts";
import { actions } from "./incident/actions.ts";

let given: IncidentServer;
useIncidentServer(
  (all) => {
    given = all;
  },
  { rateGenerate: 100_000, sessionLifetime: 1200, pluginConversation: "channel", pluginDocument: "markdown" },
);

let carol: PageReader;
let id: number;
let path: string;
beforeEach(async () => {
  carol = await PageReader.signIn(given.server);
  ({ id } = await given.reported(`Broken <b>${crypto.randomUUID()}`));
  path = `/app/incidents/${id}`;
});

const get = async (of: string) => (await given.admin.call("GET", of)).body;
const detail = () => get(`/incidents/${id}`);
const events = async (kind: string) => (await get(`/incidents/${id}/events?kind=${kind}`)).items;

describe("signing in", () => {
  test("a page leads to the issuer and back to itself", async () => {
    const other = await PageReader.signIn(given.server);
    other.browser.cookies.clear();
    const { status, path: at } = await other.open(`${path}?show=notes`);
    expect([status, at]).toEqual([200, `${path}?show=notes`]);
  });

  test.each([
    "https://evil.example/app",
    "//evil.example/app",
    "/\\evil.example/app",
    "/app/../approve/1",
    "/app/sign_in?return=/x",
    "/application",
    "/incidents/1",
    "javascript:alert(1)//app",
    "",
  ])("a link cannot lead it elsewhere: %s", async (address) => {
    const { status, path: at } = await carol.open(`/app/sign_in?return=${encodeURIComponent(address)}`);
    expect([status, at]).toEqual([200, "/app"]);
    carol.browser.cookies.clear();
    expect((await carol.open(`/app/sign_in?return=${encodeURIComponent(address)}`)).path).toBe("/app");
  });

  test("an access token opens no page, and a session no API", async () => {
    const { http, headers } = await given.member.call("GET", path);
    expect([http, headers.get("location")]).toEqual([303, `/app/sign_in?return=${encodeURIComponent(path)}`]);
    const api = await carol.browser.request(`${given.server.url}/incidents/${id}`);
    expect(api.status).toBe(401);
  });

  test("after signing out, the session opens nothing and its stream ends", async () => {
    const stream = await carol.browser.request(`${given.server.url}/app/streams/${id}`);
    expect(stream.headers.get("content-type")).toStartWith("text/event-stream");
    const { path: at } = await carol.submit("/app", {}, "/app/sign_out");
    expect(at).toBe("/app/signed_out");
    const after = await carol.browser.request(`${given.server.url}${path}`);
    expect([after.status, after.headers.get("location")]).toEqual([
      303,
      `/app/sign_in?return=${encodeURIComponent(path)}`,
    ]);
    // Otherwise each page that is open would start a sign-in at the issuer.
    const gone = await carol.browser.request(`${given.server.url}/app/streams/${id}`);
    expect([gone.status, gone.headers.get("location")]).toEqual([401, null]);
    // It reads what may have changed every few seconds.
    expect(await new Response(stream.body).text()).toContain("retry: ");
  }, 60_000);

  test("an admin who is no longer one at the issuer loses the right within minutes", async () => {
    given.server.issuer.refresh = {};
    const root = await PageReader.signIn(given.server, "boss@example.com", ["admin"]);
    expect((await root.open(path)).html).toContain(`${path}/delete`);
    given.server.issuer.claims = { groups: [] };
    given.server.clock.advance(301);
    expect((await root.open(path)).html).not.toContain(`${path}/delete`);
    expect((await root.submit(`${path}/delete`)).status).toBe(403);
    given.server.issuer.refresh = undefined;
  });

  test("a sign-in that the issuer has ended is over", async () => {
    given.server.issuer.refresh = {};
    const ended = await PageReader.signIn(given.server, "ended@example.com");
    given.server.issuer.refreshTokens.clear();
    given.server.clock.advance(301);
    given.server.issuer.refresh = undefined;
    const answer = await ended.browser.request(`${given.server.url}${path}`);
    expect(answer.status).toBe(303);
    const rows = await given.server.db
      .select()
      .from(session)
      .where(eq(session.userName, "ended@example.com"));
    expect(rows).toEqual([]);
  });
});

test("a form that arrives after the end of its sign-in is shown again instead of done", async () => {
  const user = "slow@example.com";
  const slow = await PageReader.signIn(given.server, user);
  const fields = { ...fieldsOf((await slow.open(path)).html, `${path}/note`), text: "Slowly" };
  const cookies = [...slow.browser.cookies.get(new URL(given.server.url).host)!];
  const send = (meanwhile: () => Promise<unknown>) =>
    given.server.app.handle(
      new Request(`${given.server.url}${path}/note`, {
        method: "POST",
        headers: {
          ...clicked,
          "content-type": "application/x-www-form-urlencoded",
          cookie: cookies.map((pair) => pair.join("=")).join("; "),
        },
        body: slowBody(`${new URLSearchParams(fields)}`, meanwhile),
      }),
    );
  const end = () => given.admin.call("DELETE", `/sign_ins/?user=${user}`);
  const refused = await send(end);
  expect([refused.status, await refused.text()]).toEqual([401, expect.stringContaining("Slowly")]);
  expect(await events("note")).toEqual([]);
});

test("a page is compressed for those who accept that, with a token that differs each time", async () => {
  const get = (coding: string) =>
    carol.browser.request(`${given.server.url}${path}`, { headers: { "accept-encoding": coding } });
  const [zipped, plain] = [await get("gzip, br"), await get("gzip;q=0")];
  expect([zipped, plain].map(({ headers }) => headers.get("content-encoding"))).toEqual(["gzip", null]);
  const tokens = [zipped, plain].map(async (answer) => fieldsOf(await answer.text(), `${path}/note`).csrf);
  const [one, other] = await Promise.all(tokens);
  expect(one).not.toBe(other);
});

describe("limits of strangers", () => {
  test("an address starts only so many sign-ins, and a prefetch none", async () => {
    await using server = await startTestServer({ rateGenerate: 2 });
    const start = (headers = {}) => server.fetch("/app/sign_in", { redirect: "manual", headers });
    expect((await start({ "sec-purpose": "prefetch" })).status).toBe(404);
    const answers = [await start(), await start(), await start()];
    expect(answers.map(({ status }) => status)).toEqual([303, 303, 429]);
  });

  test("a form of nobody is kept up to the size of a long note", async () => {
    const nobody = await PageReader.signIn(given.server);
    nobody.browser.cookies.clear();
    const send = (length: number) => nobody.send(`${path}/note`, { text: "x".repeat(length) });
    expect([(await send(200_000)).status, (await send(300_000)).status]).toEqual([401, 413]);
  });
});

describe("without scripts", () => {
  test("an incident is reported, and appears on the board", async () => {
    const title = `Printer <i> & "co" ${id}`;
    const { path: at, html } = await carol.submit("/app/report?title=From%20a%20link", { title });
    expect(at).toMatch(/^\/app\/incidents\/\d+$/);
    expect(textOf(html)).toContain(title);
    expect(textOf((await carol.open("/app")).html)).toContain(title);
    expect(fieldsOf((await carol.open("/app/report?title=From%20a%20link")).html, "/app/report").title).toBe(
      "From a link",
    );
  });

  test("a participant writes notes, messages and status reports, and corrects them", async () => {
    const note = await carol.submit(path, { text: "It is\r\nthe disk" }, `${path}/note`);
    expect(note.path).toMatch(new RegExp(`^${path}#event-\\d+$`));
    expect(note.html).toContain("It is\nthe disk");
    await carol.submit(`${path}/note`, { text: "Earlier", at: "2026-11-20 11:30" });
    const [, written] = await events("note");
    expect((await events("note")).map(({ at }: { at: string }) => at)).toContain("2026-11-20T11:30:00.000Z");
    await carol.submit(`${path}/say`, { text: "Hello all" });
    await carol.submit(`${path}/status-report`, { conditions: "Down", actions: "", needs: "Coffee" });
    const { html } = await carol.open(path);
    for (const words of ["Hello all", "Down", "Coffee"]) expect(html).toContain(words);

    const [first] = (await events("note")).filter(({ description }: { description: string }) =>
      description.startsWith("It is"),
    );
    expect(written).toBeDefined();
    const entry = `?entry=${first.id}`;
    expect((await carol.submit(`${path}/amend${entry}`, { text: "It was the fan" })).html).toContain(
      "It was the fan",
    );
    const [report] = await events("report.written");
    await carol.submit(`${path}/amend?entry=${report.id}`, { conditions: "Half down" });
    expect((await carol.open(`${path}?show=reports`)).html).toContain("Half down");
    expect((await carol.submit(`${path}/withdraw${entry}`)).html).not.toContain("It was the fan");

    const root = await PageReader.signIn(given.server, "root@example.com", ["admin"]);
    expect((await root.open(`${path}/entries/${first.id}`)).html).toContain("It is\nthe disk");
    expect((await carol.open(`${path}/entries/${first.id}`)).status).toBe(403);
    await root.submit(`${path}/redact?entry=${report.id}`, { reason: "A name" });
    expect((await root.open(path)).html).not.toContain("Half down");
  });

  test("an earlier description is redacted by the entry of its change, which says who was sent it", async () => {
    await carol.submit(`${path}/edit`, { description: "The password is elsewhere" });
    await carol.submit(`${path}/edit`, { title: "Other" });
    const { db, clock } = given.server;
    await db.insert(conversation).values({ incidentId: id, pluginSlug: "slack", createdAt: clock.now() });
    const [, change] = await events("incident.updated");
    const redact = `${path}/redact?entry=${change.id}`;
    expect((await carol.open(path)).html).not.toContain(redact);
    const root = await PageReader.signIn(given.server, "root@example.com", ["admin"]);
    const { html } = await root.open(path);
    // The title is not redacted.
    expect(html.match(/\/redact\?entry=\d+/g)).toEqual([`/redact?entry=${change.id}`]);
    const done = await root.submit(redact, { reason: "A password" });
    expect(done.path).toBe(`${path}/redacted/${change.id}?plugin=slack`);
    expect(done.html).toContain("<ul><li>slack</li></ul>");
    expect((await root.open(path)).html).not.toContain(redact);
  });

  test("a message to one person is shown to that person only", async () => {
    const root = await PageReader.signIn(given.server, "root@example.com", ["admin"]);
    const people = (await get(`/incidents/${id}/participants`)).items;
    const to = people.find(
      (one: { individual: { email: string } }) => one.individual.email === "carol@example.com",
    );
    const sent = await root.submit(`${path}/say`, { text: "psst", person: String(to.id) });
    expect(sent.path).toMatch(/\?show=messages#message-\d+$/);
    expect(sent.html).toContain("psst");
    expect((await carol.open(`${path}?show=messages`)).html).toContain("psst");
    const dana = await PageReader.signIn(given.server, "dana@example.com");
    for (const view of ["", "?show=messages", "?show=everything"])
      expect((await dana.open(`${path}${view}`)).html).not.toContain("psst");
  });

  test("people join, take and hand over command, and leave", async () => {
    const dana = await PageReader.signIn(given.server, "dana@example.com");
    await dana.submit(path, {}, `${path}/join`);
    await dana.submit(path, {}, `${path}/command`);
    expect((await detail()).commander.email).toBe("dana@example.com");
    // The page of somebody who has not seen that yet does not take it away.
    const stale = fieldsOf((await carol.open(path)).html, `${path}/command`);
    await carol.submit(`${path}/people`, { email: "erin", role: "liaison" });
    const people = (await get(`/incidents/${id}/participants?active=true`)).items;
    const erin = people.find(
      (one: { individual: { email: string } }) => one.individual.email === "erin@example.com",
    );
    await dana.submit(`${path}/role`, { person: String(erin.id), role: "commander" });
    expect((await detail()).commander.email).toBe("erin@example.com");
    const late = await carol.send(`${path}/command`, stale);
    expect([late.status, late.html]).toEqual([409, expect.stringContaining("erin is the commander now")]);
    await dana.submit(`${path}/renounce`, { person: String(erin.id), role: "liaison" });
    const { path: at } = await dana.submit(`${path}/leave`);
    expect(at).toBe(`${path}#people`);
    const left = (await get(`/incidents/${id}/participants?active=true`)).items;
    expect(left.map((one: { individual: { email: string } }) => one.individual.email)).not.toContain(
      "dana@example.com",
    );
  });

  test("tasks are added, changed, resolved and reopened", async () => {
    await carol.submit(`${path}/task`, {
      text: "Buy a disk",
      assignees: "carol, bob@example.com",
      owner: "dana",
      due: "2026-12-24 18:00",
    });
    const [task] = (await get(`/tasks/?incident_id=${id}`)).items;
    expect(task).toMatchObject({ description: "Buy a disk", resolve_by: "2026-12-24T18:00:00.000Z" });
    expect(task.owner.email).toBe("dana@example.com");
    await carol.submit(`${path}/task-edit?task=${task.id}`, { text: "Buy two disks" });
    await carol.submit(path, {}, `${path}/task-done`);
    expect(await get(`/tasks/${task.id}`)).toMatchObject({
      description: "Buy two disks",
      status: "Resolved",
      owner: { email: "dana@example.com" },
    });
    await carol.submit(path, {}, `${path}/task-reopen`);
    expect(await get(`/tasks/${task.id}`)).toMatchObject({ status: "Open" });
    expect((await carol.open(`/app/tasks/${task.id}`)).path).toBe(`${path}#tasks`);
    const remove = `${path}/task-delete?task=${task.id}`;
    expect((await carol.submit(remove)).status).toBe(403);
    const root = await PageReader.signIn(given.server, "root@example.com", ["admin"]);
    expect((await root.submit(remove)).html).not.toContain("Buy two disks</a>");
    expect((await given.admin.call("GET", `/tasks/${task.id}`)).http).toBe(404);
  });

  test("an edit keeps the seconds of times that it does not change", async () => {
    const impactStartedAt = new Date("2026-11-20T11:00:37.123Z");
    await given.server.db.update(incidentTable).set({ impactStartedAt }).where(eq(incidentTable.id, id));
    await carol.submit(`${path}/edit`, { title: "Another title" });
    expect(await detail()).toMatchObject({
      title: "Another title",
      impact_started_at: impactStartedAt.toISOString(),
    });
  });

  test("an incident is edited, linked, made stable, closed, reopened and deleted", async () => {
    await carol.submit(`${path}/edit`, {
      title: "Disk full",
      visibility: "Restricted",
      impact_start: "2026-11-20 11:00",
    });
    expect(await detail()).toMatchObject({
      title: "Disk full",
      visibility: "Restricted",
      description: "First",
      impact_started_at: "2026-11-20T11:00:00.000Z",
    });
    const other = await given.reported("The other one");
    expect((await carol.submit(`${path}/link`, { other: other.name, kind: "duplicate" })).html).toContain(
      "duplicate of",
    );
    const [link] = (await get(`/incidents/${id}/links`)).items;
    await carol.submit(`${path}/unlink?link=${link.id}`);
    expect((await get(`/incidents/${id}/links`)).items).toEqual([]);
    await carol.submit(`${path}/affected`, { [`service-${given.ids.serviceId}`]: "on" });
    expect((await get(`/incidents/${id}/affected`)).services).toMatchObject([{ id: given.ids.serviceId }]);
    await carol.submit(path, {}, `${path}/stable`);
    expect((await detail()).status).toBe("Stable");
    await carol.submit(`${path}/close`, { resolution: "A bigger disk" });
    expect(await detail()).toMatchObject({ status: "Closed", resolution: "A bigger disk" });
    await carol.submit(path, {}, `${path}/reopen`);
    expect((await detail()).status).toBe("Active");
    expect((await carol.submit(`${path}/delete`)).status).toBe(403);
    const root = await PageReader.signIn(given.server, "root@example.com", ["admin"]);
    expect((await root.submit(`${path}/delete`)).status).toBe(409);
    for (const document of (await get(`/documents/?incident_id=${id}`)).items)
      await given.admin.call("DELETE", `/documents/${document.id}`);
    expect((await root.submit(`${path}/delete`)).path).toBe("/app");
    expect((await root.open(path)).status).toBe(404);
  });

  test("the board has filters, and a search marks the words", async () => {
    await carol.submit(path, {}, `${path}/stable`);
    const board = async (query: string) =>
      (await carol.open(`/app?${query}`)).html.includes(`href="${path}"`);
    expect(await board(`type=${given.ids.incidentTypeId}&mine=on`)).toBe(true);
    expect(await board("type=999999")).toBe(false);
    expect(await board("show=closed")).toBe(false);
    expect(await board("show=all")).toBe(true);
    await carol.submit(`${path}/note`, { text: "A marmot <u>chewed</u> the cable" });
    const { html } = await carol.open("/app/search?q=marmots");
    expect(html).toContain("A <mark>marmot</mark> &lt;u>chewed&lt;/u> the cable");
    expect((await carol.open("/app/search?q=%22((")).status).toBe(200);
  });
});

describe("a form", () => {
  const note = async (fields: Record<string, string>) =>
    carol.send(`${path}/note`, { ...fieldsOf((await carol.open(path)).html, `${path}/note`), ...fields });

  test("that is sent twice is done once", async () => {
    const fields = { ...fieldsOf((await carol.open(path)).html, `${path}/note`), text: "Once" };
    const answers = await Promise.all([1, 2, 3].map(() => carol.send(`${path}/note`, fields)));
    expect(answers.some(({ status }) => status === 200)).toBe(true);
    expect((await carol.send(`${path}/note`, fields)).path).toMatch(/#event-\d+$/);
    expect(await events("note")).toHaveLength(1);
  });

  test("that waits for a row leaves connections to readers", async () => {
    const fields = fieldsOf((await carol.open(path)).html, `${path}/note`);
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const held = given.server.db.transaction(async (tx) => {
      await tx.select().from(incidentTable).where(eq(incidentTable.id, id)).for("update");
      await released;
    });
    const send = (_: unknown, n: number) =>
      carol.send(`${path}/note`, { ...fields, key: crypto.randomUUID(), text: `Note ${n}` });
    const sent = Array.from({ length: 20 }, send);
    await somebodyWaits(given.server.db, 3);
    const { status } = await within("a page", carol.open("/app"));
    release();
    await held;
    expect(status).toBe(200);
    expect((await Promise.all(sent)).map((page) => page.status)).toEqual(sent.map(() => 200));
  });

  test.each([
    ["another site", { "sec-fetch-site": "cross-site" }],
    ["another origin", { origin: "https://evil.example" }],
    ["no origin", { origin: "null", "sec-fetch-site": "none" }],
  ])("of %s is refused", async (_, headers) => {
    const fields = { ...fieldsOf((await carol.open(path)).html, `${path}/note`), text: "Forged" };
    expect((await carol.send(`${path}/note`, fields, headers)).status).toBe(403);
    expect(await events("note")).toEqual([]);
  });

  test("with another session's token is shown again, and sent by its reader", async () => {
    const kept = await note({ csrf: "wrong", text: "Half an hour <of> work" });
    expect(kept.status).toBe(403);
    expect(await events("note")).toEqual([]);
    const fields = fieldsOf(kept.html, `${path}/note`);
    expect(fields.text).toBe("Half an hour <of> work");
    expect((await carol.send(`${path}/note`, fields)).status).toBe(200);
    expect(await events("note")).toHaveLength(1);
  });

  test("of a session that has ended keeps its text until the user has signed in again", async () => {
    const fields = { ...fieldsOf((await carol.open(path)).html, `${path}/note`), text: "Not lost" };
    given.server.clock.advance(given.server.config.sessionLifetime + 1);
    const kept = await carol.send(`${path}/note`, fields);
    expect([kept.status, kept.html]).toEqual([401, expect.stringContaining("Sign in in another tab")]);
    await carol.signInAgain("carol@example.com");
    const again = await carol.send(`${path}/note`, fieldsOf(kept.html, `${path}/note`));
    expect(again.status).toBe(403);
    expect((await carol.send(`${path}/note`, fieldsOf(again.html, `${path}/note`))).status).toBe(200);
    expect(await events("note")).toMatchObject([{ description: "Not lost" }]);
  });

  test("with an invalid value says so, and keeps the text", async () => {
    const long = "x".repeat(1_000_000);
    for (const [fields, words] of [
      [{ text: long }, "longer than 20000 characters"],
      [{ text: "Tomorrow", at: "2027-01-01 00:00" }, "must not be in the future"],
      [{ text: "Never", at: "2026-02-30 10:00" }, "There is no such time"],
      [{ text: "   " }, "text"],
    ] as const) {
      const { status, html } = await note({ ...fields });
      expect(status).toBe(400);
      expect(html).toContain('role="alert"');
      expect(html).toContain(words);
      expect(fieldsOf(html, `${path}/note`).text).toBe(fields.text);
    }
    expect(await events("note")).toEqual([]);
  });

  test("for what somebody else has changed shows both, and overwrites only when it is sent again", async () => {
    const stale = fieldsOf((await carol.open(`${path}/edit`)).html, `${path}/edit`);
    const { version, ...before } = await detail();
    const { status } = await changeTitle(version, before, "Theirs");
    expect(status).toBe(200);
    const conflict = await carol.send(`${path}/edit`, { ...stale, title: "Mine" });
    expect(conflict.status).toBe(409);
    expect(conflict.html).toMatch(/Title<\/th><td[^>]*>Mine<\/td><td[^>]*>Theirs</);
    expect((await detail()).title).toBe("Theirs");
    await carol.send(`${path}/edit`, fieldsOf(conflict.html, `${path}/edit`));
    expect((await detail()).title).toBe("Mine");
  });

  const changeTitle = async (version: number, before: Record<string, unknown>, title: string) => {
    const names = [
      "description",
      "status",
      "visibility",
      "incident_type_id",
      "incident_priority_id",
      "resolution",
    ];
    const kept = Object.fromEntries(names.map((name) => [name, before[name]]));
    const { http: status } = await given.admin.call("PUT", `/incidents/${id}`, { ...kept, title, version });
    return { status };
  };
});

describe("while the database is slow", () => {
  /** Nobody else can use the table meanwhile. */
  const locked = <T>(table: string, work: () => Promise<T>): Promise<T> =>
    given.server.db.transaction(async (tx) => {
      await tx.execute(sql.raw(`lock table ${table} in access exclusive mode`));
      return work();
    });
  const fieldsOfNote = async (text: string): Promise<Record<string, string>> => ({
    ...fieldsOf((await carol.open(path)).html, `${path}/note`),
    text,
  });

  test("a page says so in time, and how to go on", async () => {
    const approve = `/approve/${crypto.randomUUID()}`;
    const pages = await locked("session", () =>
      Promise.all(["/app", path, "/app/sign_in", approve].map((at) => carol.open(at))),
    );
    for (const { status, html, headers } of pages) {
      expect([status, headers.get("retry-after")]).toEqual([503, "5"]);
      expect(html).toContain("is slow at the moment");
      expect(html).toContain("Try again</a>");
    }
    expect((await carol.open(path)).status).toBe(200);
  }, 60_000);

  test("a form that takes long is shown again with its text, and is done once however often it is sent", async () => {
    const fields = await fieldsOfNote("Half an hour <of> work");
    const note = `${path}/note`;
    const [late, again] = await locked("event", async () => [
      await carol.send(note, fields),
      await carol.send(note, fields),
    ]);
    for (const page of [late!, again!]) {
      expect(page.html).toContain("not known yet whether this is stored");
      expect(fieldsOf(page.html, note)).toMatchObject({ text: fields.text!, key: fields.key! });
    }
    expect(late!.status).toBe(503);
    // It was not given up.
    await until("the note", async () => (await events("note")).length === 1);
    expect((await carol.send(note, fieldsOf(again!.html, note))).path).toMatch(/#event-\d+$/);
    expect(await events("note")).toMatchObject([{ description: fields.text }]);
  }, 60_000);

  test("a form is shown again when looking up its sender takes too long", async () => {
    const fields = await fieldsOfNote("Mine");
    const note = `${path}/note`;
    const kept = await locked("session", () => carol.send(note, fields));
    expect(kept.status).toBe(503);
    expect((await carol.send(note, fieldsOf(kept.html, note))).status).toBe(200);
    expect(await events("note")).toMatchObject([{ description: "Mine" }]);
  }, 60_000);
});

test("an asset of another release leads to that of this one, and is not kept", async () => {
  const [, own] = (await carol.open("/app")).html.match(/href="(\/app\/assets\/style-[0-9a-f]+\.css)"/)!;
  const read = (at: string) => carol.browser.request(`${given.server.url}${at}`);
  const [kept, other] = [await read(own!), await read(`/app/assets/style-${"0".repeat(16)}.css`)];
  expect(kept.headers.get("cache-control")).toContain("immutable");
  expect([other.status, other.headers.get("cache-control")]).toEqual([200, "no-store"]);
  expect(await other.text()).toBe(await kept.text());
  expect((await read("/app/assets/nothing-0000000000000000.css")).status).toBe(404);
});

describe("a Restricted incident, for somebody who does not take part", () => {
  test("is like one that does not exist: its pages, forms and stream", async () => {
    await given.member.call("POST", `/incidents/${id}/events`, { description: "Secret words" });
    await given.server.db
      .update(incidentTable)
      .set({ visibility: "Restricted" })
      .where(eq(incidentTable.id, id));
    const dana = await PageReader.signIn(given.server, "dana@example.com");
    const before = await given.server.db.$count(event, eq(event.incidentId, id));
    const { name } = await detail();
    const csrf = fieldsOf((await dana.open("/app/report")).html, "/app/report").csrf!;
    const hidden = async (of: number | string, rest: string, method: "GET" | "POST") => {
      const at = `/app/incidents/${of}${rest}`;
      const sent = {
        csrf,
        key: crypto.randomUUID(),
        text: "x",
        version: "1",
        entry: "1",
        task: "1",
        link: "1",
      };
      const { status, html, path: to } = method === "GET" ? await dana.open(at) : await dana.send(at, sent);
      return { status, html, path: to.replace(String(of), "N") };
    };
    const places = ["", "/entries/1", "/redacted/1", ...Object.keys(actions).map((one) => `/${one}`)];
    for (const rest of places)
      for (const method of ["GET", "POST"] as const) {
        if (method === "POST" && ["", "/entries/1", "/redacted/1"].includes(rest)) continue;
        const seen = await hidden(id, rest, method);
        expect([rest, seen]).toEqual([rest, await hidden(987_654, rest, method)]);
        expect(seen.status).toBe(404);
        expect(seen.html).not.toContain("Secret");
      }
    expect((await hidden(name, "", "GET")).status).toBe(404);
    const found = await given.documentOf(id);
    for (const rest of ["", "/edit", "/versions", "/versions/1", "/redact", "/download/md", "/download/html"])
      expect(await dana.open(`/app/documents/${found.id}${rest}`)).toMatchObject({
        status: 404,
        html: (await dana.open(`/app/documents/987654${rest}`)).html,
      });
    const streams = [id, 987_654].map(async (of) => {
      const { status, html } = await dana.open(`/app/streams/${of}`);
      return { status, html };
    });
    expect(await streams[0]).toEqual((await streams[1])!);
    for (const page of ["/app", "/app?show=all", "/app/search?q=secret"])
      expect((await dana.open(page)).html).not.toContain(`incidents/${id}"`);
    expect(await given.server.db.$count(event, eq(event.incidentId, id))).toBe(before);
  });
});
