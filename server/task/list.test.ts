import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { taskAssignee } from "../../drizzle/schema/index.ts";
import { noteAsked, rowsRead } from "../../tests/support/database/statements.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { pagesOf } from "../../tests/support/http/pages.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { insertTask } from "../../tests/support/http/task.ts";

let server: TestServer;
let member: Person;
let ids: IncidentIds;
const dueIn: Record<string, number> = { a: -2, b: -1, c: 0, d: 1, e: 1, f: 2 };
beforeAll(async () => {
  server = await startTestServer();
  member = await personOf(server, "carol@example.com");
  ids = await insertIncident(server.db, server.clock.now());
  for (const letter of "fbdaec") await insert(letter, dueIn[letter]!);
});
afterAll(() => server[Symbol.asyncDispose]());

/** Inserts a task due in `hours`. By letter: d is resolved, Alice owns a and f, Bob is assigned to b. */
async function insert(description: string, hours: number) {
  const now = server.clock.now();
  const id = await insertTask(server, {
    incidentId: ids.incidentId,
    description: `letter ${description}`,
    resolveBy: new Date(now.getTime() + hours * 3600_000),
    ...(description === "d" ? { status: "Resolved", resolvedAt: now } : {}),
    ...("af".includes(description) ? { ownerId: ids.alice } : {}),
  });
  if (description === "b") await server.db.insert(taskAssignee).values({ taskId: id, individualId: ids.bob });
}

async function page(parameters: Record<string, string>) {
  const { http, body } = await member.call("GET", `/tasks/?${new URLSearchParams(parameters)}`);
  expect([http, body]).toMatchObject([200, {}]);
  return body as { items: { description: string }[]; next_cursor: string | null };
}

/** Returns the letters on all pages; `between` runs after each page. */
async function walk(parameters: Record<string, string>, between = async () => {}): Promise<string> {
  let letters = "";
  const query = new URLSearchParams({ q: "letter", sort: "resolve_by", ...parameters });
  for await (const { items, next_cursor } of pagesOf(member, `/tasks/?${query}`)) {
    letters += items.map(({ description }: { description: string }) => description.at(-1)).join("");
    if (next_cursor) await between();
  }
  return letters;
}

test.each([
  ["resolve_by", "abcdef"],
  ["-resolve_by", "fedcba"],
  ["id", "fbdaec"],
  ["-id", "ceadbf"],
])("sorted by %s", async (sort, order) => {
  for (const limit of ["1", "4", "200"]) expect(await walk({ sort, limit })).toBe(order);
});

test("sorts by urgency by default", async () => {
  const { items } = await page({});
  expect(items[0]!.description).toBe("letter a");
});

describe("filters", () => {
  test.each([
    [{ status: "Resolved" }, "d"],
    [{ status: "Cancelled" }, ""],
    [{ overdue: "true" }, "ab"],
    [{ overdue: "true", owner: "alice@example.com" }, "a"],
    [{ owner: "ALICE@example.com" }, "af"],
    [{ owner: "alice" }, "af"],
    [{ assignee: "bob@example.com" }, "b"],
    [{ assignee: "nobody@example.com" }, ""],
    [{ incident_id: "4711" }, ""],
  ])("%p", async (filters, expected) => {
    expect(await walk(filters as Record<string, string>)).toBe(expected);
  });

  test.each([
    ["status", "open"],
    ["overdue", "false"],
    ["owner", "a@b@c"],
    ["owner", "a\0b"],
    ["assignee", " "],
    ["sort", "status"],
    ["q", "a\0b"],
    ["q", "a".repeat(501)],
  ])("refuses %s=%s", async (field, value) => {
    const answer = await member.call("GET", `/tasks/?${new URLSearchParams({ [field]: value })}`);
    expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input", field } });
  });

  test("a cursor is valid only with its filters", async () => {
    const { next_cursor: cursor } = await page({ owner: "alice@example.com", limit: "1" });
    const others: Record<string, string>[] = [
      { owner: "bob@example.com" },
      { assignee: "alice@example.com" },
      { overdue: "true" },
    ];
    for (const other of others) {
      const query = new URLSearchParams({ owner: "alice@example.com", ...other, cursor: cursor! });
      expect(await member.call("GET", `/tasks/?${query}`)).toMatchObject({
        http: 400,
        body: { field: "cursor" },
      });
    }
  });
});

// Last, because it adds tasks that the others would see.
test("pages show each once while others are inserted before, between and after", async () => {
  let left = 2;
  const all = await walk({ limit: "2" }, async () => {
    if (left-- <= 0) return;
    for (const hours of [-9, 0.5, 9]) await insert("x", hours);
  });
  expect(all.replaceAll("x", "")).toBe("abcdef");
});

test("statistics from when there were few people do not make it read everybody for each task", async () => {
  const { db } = server;
  await db.execute(sql`analyze individual, task, task_assignee`);
  await db.execute(sql`
    with made as (
      insert into individual (name, email, created_at, updated_at)
      select 'Person ' || n, n || '@example.com', now(), now() from generate_series(1, 3000) as n returning id),
    given as (
      insert into task (incident_id, description, resolve_by, created_at, updated_at)
      select ${ids.incidentId}, 'given ' || id, now(), now(), now() from made returning id)
    insert into task_assignee select given.id, made.id from given join made on made.id % 3000 = given.id % 3000`);
  const asked = noteAsked(db);
  expect((await page({ sort: "-id" })).items).toHaveLength(50);
  const [reading] = asked.filter(({ text }) => text.includes('from "task_assignee"'));
  expect(await rowsRead(db, reading!)).toBeLessThan(10_000);
});
