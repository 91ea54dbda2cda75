import { beforeEach, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { auditLog, challenge, individual, session, token } from "../drizzle/schema/index.ts";
import { after } from "../platform/clock.ts";
import { clicked } from "../tests/support/browser/browser.ts";
import { fieldsOf, PageReader, textOf } from "../tests/support/browser/reader.ts";
import { type IncidentServer, useIncidentServer } from "../tests/support/http/incident_server.ts";
import { personOf } from "../tests/support/http/people.ts";
import { decide, newChallenge, poll, rowOf, signInToken } from "../tests/support/http/server.ts";
import { until } from "../tests/support/process/until.ts";
import { timeText, Values } from "./values.ts";

let given: IncidentServer;
useIncidentServer(
  (all) => {
    given = all;
  },
  { rateGenerate: 100_000 },
);

const page = "/app/profile";
let user: string;
let reader: PageReader;
let users = 0;
beforeEach(async () => {
  users += 1;
  user = `reader${users}@example.com`;
  reader = await PageReader.signIn(given.server, user);
});

const rowOfUser = async () =>
  (await given.server.db.select().from(individual).where(eq(individual.email, user)))[0];
const put = async (fields: object) => {
  const { id, version } = (await rowOfUser())!;
  const whole = { email: user, incident_type_ids: [], incident_priority_ids: [], term_ids: [] };
  const { http } = await given.admin.call("PUT", `/individuals/${id}`, { ...whole, version, ...fields });
  expect(http).toBe(200);
};

describe("the profile", () => {
  test("has the name that others see, and the time zone of the pages", async () => {
    const { html } = await reader.open(page);
    expect(fieldsOf(html, page)).toMatchObject({ name: `reader${users}`, time_zone: "" });
    expect(await rowOfUser()).toBeUndefined();
    expect(html).toContain("Times are in UTC. <a ");
    const saved = await reader.submit(page, { name: "Rita Reader", time_zone: "europe/berlin" });
    expect(saved.html).toContain("Saved.");
    expect(saved.html).toContain("Times are in Europe/Berlin. ");
    expect(saved.html).not.toContain("Choose your time zone");
    expect(await rowOfUser()).toMatchObject({ name: "Rita Reader", timeZone: "Europe/Berlin", version: 2 });
    // Another browser.
    const other = await PageReader.signIn(given.server, user);
    expect((await other.open("/app")).html).toContain("Times are in Europe/Berlin.");
    await other.submit(page, { time_zone: "" });
    expect(await rowOfUser()).toMatchObject({ name: "Rita Reader", timeZone: null, version: 2 });
    const { body } = await given.admin.call("GET", `/individuals/?email=${user}`);
    expect(Object.keys(body.items[0])).not.toContain("time_zone");
  });

  test("shows both names when somebody else has changed it meanwhile", async () => {
    await reader.submit(page, { name: "First" });
    const stale = fieldsOf((await reader.open(page)).html, page);
    await put({ name: "Theirs" });
    const conflict = await reader.send(page, { ...stale, name: "Mine", time_zone: "Asia/Tokyo" });
    expect(conflict.status).toBe(409);
    expect(conflict.html).toMatch(/Name<\/th><td[^>]*>Mine<\/td><td[^>]*>Theirs</);
    expect(await rowOfUser()).toMatchObject({ name: "Theirs", timeZone: null });
    await reader.send(page, fieldsOf(conflict.html, page));
    expect(await rowOfUser()).toMatchObject({ name: "Mine", timeZone: "Asia/Tokyo" });
  });

  test("of somebody who is called for incidents stays so", async () => {
    await reader.submit(page, { name: "First" });
    await put({ name: "First", incident_type_ids: [given.ids.incidentTypeId] });
    expect((await reader.submit(page, { name: "Second" })).html).toContain("Saved.");
    const { body } = await given.admin.call("GET", `/individuals/?email=${user}`);
    expect(body.items).toMatchObject([{ name: "Second", incident_type_ids: [given.ids.incidentTypeId] }]);
  });

  test.each([
    "Europe/Atlantis",
    "+02:00",
    "<script>hit()</script>",
    "UTC; drop table session",
    "__proto__",
    "Europe/Berlin\u0000",
    "x".repeat(100_000),
  ])("refuses an unknown zone: %p", async (zone) => {
    const { status, html } = await reader.submit(page, { time_zone: zone });
    expect([status, html]).toEqual([400, expect.stringContaining("There is no such time zone")]);
    expect(html).not.toContain("<script>hit");
    expect((await rowOfUser())?.timeZone ?? null).toBeNull();
  });

  test("times are in UTC when this server does not know the zone", async () => {
    await reader.submit(page, { time_zone: "Europe/Berlin" });
    await given.server.db
      .update(individual)
      .set({ timeZone: "Europe/Atlantis" })
      .where(eq(individual.email, user));
    const { id } = await given.reported();
    const { status, html } = await reader.open(`/app/incidents/${id}`);
    expect([status, html]).toEqual([200, expect.stringContaining("Times are in UTC. <a ")]);
    expect(fieldsOf((await reader.open(page)).html, page).time_zone).toBe("Europe/Atlantis");
  });
});

test("forms and pages of an incident have the reader's zone", async () => {
  await reader.submit(page, { time_zone: "Asia/Kathmandu" });
  const { id } = await given.reported();
  const path = `/app/incidents/${id}`;
  await reader.submit(path, {}, `${path}/join`);
  await reader.submit(`${path}/note`, { text: "Earlier", at: "2026-11-20 11:30" });
  const { body } = await given.admin.call("GET", `/incidents/${id}/events?kind=note`);
  expect(body.items).toMatchObject([{ at: "2026-11-20T05:45:00.000Z" }]);
  await reader.submit(`${path}/task`, { text: "Later", due: "2026-12-24 18:00" });
  const tasks = await given.admin.call("GET", `/tasks/?incident_id=${id}`);
  const [task] = tasks.body.items;
  expect(task.resolve_by).toBe("2026-12-24T12:15:00.000Z");
  const edit = `${path}/task-edit`;
  expect(fieldsOf((await reader.open(`${edit}?task=${task.id}`)).html, edit).due).toBe("2026-12-24 18:00");
  await reader.submit(`${path}/edit`, { impact_start: "2026-11-20 11:00" });
  const { html } = await reader.open(path);
  expect(html).toContain('title="2026-11-20 11:30:00 Asia/Kathmandu">11:30<');
  expect((await given.admin.call("GET", `/incidents/${id}`)).body.impact_started_at).toBe(
    "2026-11-20T05:15:00.000Z",
  );
});

describe("a time of a form", () => {
  const read = (text: string, before?: Date) =>
    new Values(new Map([["at", text]])).time("at", "Europe/Berlin", before)?.toISOString();

  test.each([
    ["2026-03-29 01:59", "2026-03-29T00:59:00.000Z"],
    ["2026-03-29 03:00", "2026-03-29T01:00:00.000Z"],
    ["2026-10-25 01:59", "2026-10-24T23:59:00.000Z"],
    ["2026-10-25 03:00", "2026-10-25T02:00:00.000Z"],
  ])("is that of the zone: %s", (text, expected) => {
    expect(read(text)).toBe(expected);
  });

  test.each([
    ["2026-03-29 02:30", "2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"],
    ["2026-10-25 02:30", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"],
  ])("that is skipped or comes twice needs its offset: %s", (text, one, other) => {
    expect(() => read(text)).toThrow(`write ${one} or ${other}`);
    expect([read(one), read(other)]).toEqual([new Date(one).toISOString(), new Date(other).toISOString()]);
  });

  test("is not after the last year", () => {
    const zone = "America/Los_Angeles";
    expect(() => new Values(new Map([["at", "9999-12-31 23:00"]])).time("at", zone)).toThrow(
      "There is no such time",
    );
  });

  test("is a day in a filter, which is included", () => {
    const bound = (name: "since" | "until", text: string, zone = "Europe/Berlin") =>
      new Values(new Map([[name, text]])).bound(name, zone)?.toISOString();
    expect(bound("since", "2026-10-25")).toBe("2026-10-24T22:00:00.000Z");
    expect(bound("until", "2026-10-25")).toBe("2026-10-25T23:00:00.000Z");
    // Without a midnight.
    expect(bound("since", "2026-09-06", "America/Santiago")).toBe("2026-09-06T04:00:00.000Z");
    for (const name of ["since", "until"] as const)
      expect([bound(name, "2026-11-27 14:05"), bound(name, " ")]).toEqual([
        "2026-11-27T13:05:00.000Z",
        undefined,
      ]);
    for (const text of ["2026-02-30", "9999-12-31"])
      expect(() => bound("until", text, "America/Los_Angeles")).toThrow("There is no such time");
  });

  test("that comes twice stays the one that it was", () => {
    for (const before of [new Date("2026-10-25T00:30:37Z"), new Date("2026-10-25T01:30:37Z")])
      expect(read(timeText(before, "Europe/Berlin"), before)).toBe(before.toISOString());
  });
});

test("sign-ins of the reader are listed and ended; those of others are not", async () => {
  const { server } = given;
  const others = await PageReader.signIn(server, `other-${user}`);
  const [ofOther] = (await others.open(page)).html.match(/(?<=name="sign_in" value=")[^"]+/)!;
  server.issuer.user = user;
  const jwt = await signInToken(server);
  const whoami = async () =>
    (await server.fetch("/whoami", { headers: { authorization: `Bearer ${jwt}` } })).status;
  const { html } = await reader.open(page);
  expect(html).not.toContain(ofOther!);
  expect(textOf(html)).toMatch(/browser \(this one\)/);
  const action = `${page}/sign-ins`;
  const { csrf, key } = fieldsOf(html, action) as Record<string, string>;
  const send = (id: string) =>
    reader.send(action, { csrf: csrf!, key: `${key}${id}`.slice(-36), sign_in: id });
  expect((await send(ofOther!)).status).toBe(404);
  expect((await others.open("/app")).status).toBe(200);
  const terminal = html.match(/terminal<\/td>.*?name="sign_in" value="([^"]+)"/s)![1]!;
  expect([await whoami(), (await send(terminal)).path, await whoami()]).toEqual([200, page, 401]);
  // The reader's own browser.
  const own = (await reader.open(page)).html.match(/this one.*?name="sign_in" value="([^"]+)"/s)![1]!;
  // It is led to the sign-in, where the issuer still knows the reader.
  await send(own);
  expect((await reader.open(page)).html).not.toContain(own);
});

test("a certificate of the reader's organisation is ended after a question", async () => {
  const { db, clock } = given.server;
  const now = clock.now();
  const jti = crypto.randomUUID().replace(/^(.{14})./, "$18");
  await db.insert(token).values({ jti, userName: user, issuedAt: now, expiresAt: after(now, 3600) });
  const action = `${page}/sign-ins`;
  const { csrf, key } = fieldsOf((await reader.open(page)).html, action) as Record<string, string>;
  const asked = await reader.send(action, { csrf: csrf!, key: key!, certificate: jti });
  expect([asked.status, asked.html]).toEqual([200, expect.stringContaining("This cannot be undone")]);
  const revokedAt = async () => (await db.select().from(token).where(eq(token.jti, jti)))[0]!.revokedAt;
  expect(await revokedAt()).toBeNull();
  expect((await reader.send(action, fieldsOf(asked.html, action))).path).toBe(page);
  expect(await revokedAt()).not.toBeNull();
});

describe("signing out everywhere", () => {
  test("ends all browsers and terminals of the user on all servers, and nothing of others", async () => {
    const { server } = given;
    await using second = await server.another();
    const others = await PageReader.signIn(server, `other-${user}`);
    const othersToken = await signInToken(server);
    server.issuer.user = user;
    const elsewhere = await PageReader.signIn(server, user);
    const terminal = await signInToken(server);
    const waiting = await newChallenge(server, { user });
    await decide(waiting, "approve");
    // As behind a proxy that signs people in.
    const detached = { issuerSessionId: null };
    await server.db.update(session).set(detached).where(eq(session.userName, user));
    await server.db.update(challenge).set(detached).where(eq(challenge.userName, user));
    const unknown = await personOf(server, user);
    // As of an organisation's certificate.
    const of = { userName: user, issuedAt: server.clock.now(), expiresAt: server.clock.now() };
    const certificate = "00000000-0000-8000-8000-000000000000";
    await server.db.insert(token).values({ ...of, jti: certificate });
    const whoami = async (jwt: string) =>
      (await second.fetch("/whoami", { headers: { authorization: `Bearer ${jwt}` } })).status;
    // The other server remembers them.
    expect([await whoami(terminal), await whoami(othersToken)]).toEqual([200, 200]);

    expect((await reader.open(page)).html).toContain('name="everywhere"');
    const done = await reader.submit(page, { everywhere: "on" }, "/app/sign_out");
    expect([done.path, done.html]).toEqual([
      "/app/signed_out?everywhere",
      expect.stringContaining("terminals and other browsers are signed out"),
    ]);
    for (const one of [reader, elsewhere])
      expect((await one.browser.request(`${server.url}/app`)).status).toBe(303);
    await until("the notice on the other server", async () => (await whoami(terminal)) === 401);
    expect((await unknown.call("GET", "/whoami")).http).toBe(401);
    expect((await poll(server, waiting)).body.status).toBe("expired");
    expect((await others.browser.request(`${server.url}/app`)).status).toBe(200);
    expect(await whoami(othersToken)).toBe(200);
    const [kept] = await server.db.select().from(token).where(eq(token.jti, certificate));
    expect(kept!.revokedAt).toBeNull();
    expect(await server.db.$count(session, eq(session.userName, user))).toBe(0);
    const signedOut = and(eq(auditLog.actor, user), eq(auditLog.action, "session.signed_out"));
    expect(await server.db.select().from(auditLog).where(signedOut)).toMatchObject([
      { data: { everywhere: true }, address: "127.0.0.1" },
    ]);
  });

  test("needs the form of the reader's own session", async () => {
    const other = await PageReader.signIn(given.server, user);
    const { csrf } = fieldsOf((await other.open(page)).html, "/app/sign_out");
    const forged = await reader.send("/app/sign_out", { csrf: csrf!, everywhere: "on" });
    expect(forged.status).toBe(403);
    // With a session that has ended, nobody would be signed out.
    const stranger = await PageReader.signIn(given.server, user);
    stranger.browser.cookies.clear();
    const late = await stranger.browser.request(`${given.server.url}/app/sign_out`, {
      method: "POST",
      body: new URLSearchParams({ csrf: csrf!, everywhere: "on" }),
      headers: clicked,
    });
    expect(late.headers.get("location")).toStartWith("/app/sign_in?return=");
    expect((await other.open(page)).path).toBe(page);
  });
});

describe("terminals that ask to sign in", () => {
  const asked = async (of = user) => {
    const wanted = await newChallenge(given.server, { user: of, headers: { "user-agent": "<b>svc</b> 1" } });
    return { ...wanted, id: (await rowOf(given.server, wanted)).id };
  };
  const link = async (who: PageReader, { id }: { id: string }) =>
    (await who.open("/app/work")).html.includes(`/approve/${id}`);

  test("are on My work of the browser that has opened them, until they are decided or expire", async () => {
    const first = await asked();
    expect(await link(reader, first)).toBe(false);
    await reader.browser.open(first.challengeUrl);
    const { html } = await reader.open("/app/work");
    expect(html).toContain(`/approve/${first.id}`);
    expect(html).toContain("from 127.0.0.1");
    expect(html).not.toContain("<b>svc");
    const elsewhere = await PageReader.signIn(given.server, user);
    expect(await link(elsewhere, first)).toBe(false);
    await decide(first, "deny", reader.browser);
    expect(await link(reader, first)).toBe(false);

    const late = await asked();
    await reader.browser.open(late.challengeUrl);
    expect(await link(reader, late)).toBe(true);
    given.server.clock.advance(given.server.config.challengeLifetime);
    expect(await link(reader, late)).toBe(false);
  });

  test("for somebody else are not, and neither are those that may not be decided from here", async () => {
    const theirs = await asked(`other-${user}`);
    await reader.browser.open(theirs.challengeUrl);
    expect(await link(reader, theirs)).toBe(false);
    const legacy = await newChallenge(given.server, { user, legacy: true });
    await reader.browser.open(legacy.challengeUrl);
    const { id } = await rowOf(given.server, legacy);
    expect(await link(reader, { id })).toBe(true);
    await given.server.db.update(challenge).set({ requestAddress: "192.0.2.1" }).where(eq(challenge.id, id));
    expect(await link(reader, { id })).toBe(false);
  });
});
