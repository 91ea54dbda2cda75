import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { fieldsOf, PageReader, textOf } from "../tests/support/browser/reader.ts";
import { insertNotes } from "../tests/support/domain/notes.ts";
import { type IncidentServer, useIncidentServer } from "../tests/support/http/incident_server.ts";

let given: IncidentServer;
useIncidentServer(
  (all) => {
    given = all;
  },
  { rateGenerate: 100_000, pluginDocument: "markdown" },
);

let carol: PageReader;
let id: number;
let path: string;
beforeEach(async () => {
  carol = await PageReader.signIn(given.server);
  ({ id } = await given.reported());
  path = `/app/incidents/${id}`;
});

const entriesOf = (html: string) => [...html.matchAll(/>Entry (\d+)</g)].map(([, number]) => Number(number));
const older = (html: string) => textOf(html.match(/href="([^"]+)">Older</)?.[1] ?? "");

describe("50,000 entries", () => {
  const count = 50_000;
  let long: string;
  let first: number;
  beforeAll(async () => {
    const { id: incidentId } = await given.reported("A long night");
    long = `/app/incidents/${incidentId}`;
    first = await insertNotes(given.server, incidentId, count);
  });

  test("are shown a hundred at a time, back to the first one", async () => {
    const page = await carol.open(long);
    expect(page.html.length).toBeLessThan(150_000);
    expect(entriesOf(page.html)[0]).toBe(count);
    const next = await carol.open(older(page.html));
    expect(entriesOf(next.html)).toEqual(
      Array.from({ length: 100 }, (_, at) => entriesOf(page.html).at(-1)! - 1 - at),
    );
    // Close to the beginning.
    let { html } = await carol.open(`${long}?at=${first + 119}`);
    const seen = entriesOf(html);
    while (older(html)) {
      ({ html } = await carol.open(older(html)));
      seen.push(...entriesOf(html));
    }
    expect(seen).toEqual(Array.from({ length: 120 }, (_, at) => 120 - at));
  });

  test("each have an address of their own", async () => {
    const { html, path: at } = await carol.open(`${long}?at=${first + 9}`);
    expect([at, entriesOf(html)[0]]).toEqual([`${long}?at=${first + 9}`, 10]);
    expect(html).toContain(`href="${long}?at=${first + 9}#event-${first + 9}"`);
    expect(html).toContain(`<a href="${long}">To the newest entries</a>`);
    // The page with the newest ones stays current.
    expect((await carol.open(`${long}?at=${first + count - 1}`)).path).toBe(
      `${long}#event-${first + count - 1}`,
    );
    for (const unknown of [`${long}?at=999999999`, `${path}?at=${first}`])
      expect((await carol.open(unknown)).status).toBe(404);
  });

  test("are corrected wherever they are", async () => {
    const entry = first + 4;
    const { path: at, html } = await carol.submit(`${long}/amend?entry=${entry}`, { text: "It was the fan" });
    expect(at).toBe(`${long}?at=${entry}#event-${entry}`);
    expect(html).toContain("It was the fan");
  });
});

test("100,000 open incidents are a board of fifty at a time", async () => {
  await given.server.db.execute(sql`
    insert into incident (title, description, incident_type_id, incident_priority_id, reported_at, created_at, updated_at)
    select 'Slow ' || n, '', ${given.ids.incidentTypeId}, ${given.ids.incidentPriorityId}, at, at, at
    from generate_series(1, 100000) as n, lateral (select timestamptz '2026-01-01' + n * interval '1 second' as at) as time`);
  const { html } = await carol.open("/app");
  expect(html.match(/<tr>/g)).toHaveLength(51);
  expect(html.length).toBeLessThan(100_000);
  expect(html).toContain("50+ open incidents");
  const next = await carol.open(older(html));
  expect(next.html.match(/<tr>/g)).toHaveLength(51);
  expect(next.html).not.toBe(html);
});

test("150 people: the last one joins, gets a role by user name, and leaves", async () => {
  await given.server.db.execute(sql`
    with people as (
      insert into individual (name, email, created_at, updated_at)
      select 'Person ' || n, 'person' || n || '-' || ${id}::text || '@example.com', now(), now()
      from generate_series(1, 149) as n returning id)
    insert into participant (incident_id, individual_id, joined_at) select ${id}, id, now() from people order by id`);
  const zoe = await PageReader.signIn(given.server, "zoe@example.com");
  const { html } = await zoe.submit(path, {}, `${path}/join`);
  expect(html).not.toContain(`action="${path}/join"`);
  expect(html).toContain(`href="${path}/leave"`);
  expect(html).toContain("And more people.");
  const quiet = await PageReader.signIn(given.server, `person149-${id}@example.com`);
  expect((await quiet.open(path)).html).toContain(`href="${path}/leave"`);
  expect((await carol.open(`${path}/role`)).html).toContain("The first 100 people are suggested");
  const unknown = await carol.submit(`${path}/role`, { person: "nobody@example.com", role: "scribe" });
  expect([unknown.status, unknown.html]).toEqual([
    400,
    expect.stringContaining("Nobody with this user name"),
  ]);
  await carol.submit(`${path}/role`, { person: "zoe@example.com", role: "commander" });
  const commander = async () => (await given.admin.call("GET", `/incidents/${id}`)).body.commander.email;
  expect(await commander()).toBe("zoe@example.com");
  await carol.submit(path, {}, `${path}/command`);
  expect(await commander()).toBe("carol@example.com");
  expect((await zoe.submit(`${path}/leave`)).html).toContain(`action="${path}/join"`);
});

describe("a text of 1 MB", () => {
  const text = "word ".repeat(200_000);

  test.each([
    ["note", { text }],
    ["say", { text }],
    ["status-report", { conditions: text }],
    ["task", { text }],
    ["edit", { description: text }],
    ["close", { resolution: text }],
  ] as const)("in %s is refused, and kept", async (action, fields) => {
    const { status, html } = await carol.submit(`${path}/${action}`, fields);
    expect(status).toBe(400);
    expect(html).toContain("is longer than 20000 characters");
    expect(html).toContain(text);
  });

  test("in a document is stored, and its beginning is shown; a longer one is refused, and kept", async () => {
    const document = `/app/documents/${given.ids.documentId}`;
    const stored = await carol.submit(`${document}/edit`, { text });
    expect(stored.status).toBe(200);
    expect(stored.html).toContain("Only the first 200,000 of 1,000,000 characters are shown");
    expect(stored.html.length).toBeLessThan(250_000);
    const refused = await carol.submit(`${document}/edit`, { text: `${text}more` });
    expect([refused.status, refused.html.includes(`${text}more`)]).toEqual([400, true]);
  });

  test("in a report of an incident is refused, and kept", async () => {
    const { status, html } = await carol.submit("/app/report", { title: "Broken", description: text });
    expect([status, html.includes(text)]).toEqual([400, true]);
  });
});

test("when two people take command at once, the second one reads who has it", async () => {
  const others = [];
  for (const user of ["dana@example.com", "erin@example.com"]) {
    const reader = await PageReader.signIn(given.server, user);
    others.push({ user, reader, fields: fieldsOf((await reader.open(path)).html, `${path}/command`) });
  }
  const answers = await Promise.all(
    others.map(({ reader, fields }) => reader.send(`${path}/command`, fields)),
  );
  const { body } = await given.admin.call("GET", `/incidents/${id}`);
  const won = others.findIndex(({ user }) => user === body.commander.email);
  expect(answers[won]).toMatchObject({ status: 200, path: `${path}#people` });
  expect(answers[1 - won]).toMatchObject({ status: 409 });
  expect(textOf(answers[1 - won]!.html)).toMatch(/is the commander now|is already the commander/);
});
