import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { count, eq, sql } from "drizzle-orm";
import { event, individual } from "../drizzle/schema/index.ts";
import { noteStatements } from "./support/database/statements.ts";
import { pagesOf } from "./support/http/pages.ts";
import type { ApiAnswer } from "./support/http/people.ts";
import { ofAnIncident, type Request } from "./support/http/permission_requests.ts";
import { createWorld, nowhere, type Place, type World } from "./support/http/permission_world.ts";
import { readPermissions } from "./support/http/permissions.ts";
import { startTestServer, type TestServer } from "./support/http/server.ts";

// A Restricted incident reveals nothing to those who may not read it, beyond the status.

let server: TestServer;
let world: World;
let statements: string[];
let hidden: Place;
beforeAll(async () => {
  server = await startTestServer({ pluginDocument: "markdown" });
  world = await createWorld(server);
  hidden = await world.newPlace("Restricted");
  statements = noteStatements(server.db);
});
afterAll(() => server[Symbol.asyncDispose]());

/** The answer without request-specific parts, and the database queries for it. */
async function traceOf(method: string, { path, body }: Request, who: number, key?: string) {
  statements.length = 0;
  const headers: Record<string, string> = key === undefined ? {} : { "idempotency-key": key };
  const answer = await world.people.member[who]!.call(method, path, body, headers);
  return { ...shownOf(answer), statements: [...statements] };
}

const shownOf = ({ http, body, headers }: ApiAnswer) => ({
  http,
  body: { ...body, request_id: "" },
  headers: [...headers.keys()].sort(),
});

/** A PUT is also tried with a wrong version. */
const asOften = (requests: Request[]): Request[] =>
  requests.flatMap((one) =>
    typeof one.body === "object" && "version" in one.body
      ? [one, { ...one, body: { ...one.body, version: otherVersion(one.body.version) } }]
      : [one],
  );
const otherVersion = (version: unknown) => (typeof version === "string" ? "9" : 9);

/** The requests that the table refuses to a member, or answers without hidden records. */
const refused = readPermissions().filter(({ cells }) =>
  cells.some(
    ({ role, visibility, answer }) =>
      role === "member" && visibility === "Restricted" && /^(4\d\d|without)$/.test(answer),
  ),
);

describe("hidden records are answered like missing ones, without effects", () => {
  test.each(refused.map(({ request, route }) => [request, route.split(" ")[0]!] as const))(
    "%s",
    async (request, method) => {
      const timeline = () => server.db.select().from(event).where(eq(event.incidentId, hidden.incidentId));
      const before = await timeline();
      const ask = ofAnIncident[request]!;
      const nothings = asOften(ask(nowhere(hidden), world));
      for (const who of world.people.member.keys()) {
        for (const [i, one] of asOften(ask(hidden, world)).entries()) {
          // The first request of its kind may run more queries, whose results are then cached.
          await traceOf(method, nothings[i]!, who);
          for (const key of method === "POST" ? [undefined, "a", "b"] : [undefined]) {
            const keyOf = (place: string) => key && `${key}-${place}-${world.next()}`;
            const seen = await traceOf(method, one, who, keyOf("hidden"));
            const nothing = await traceOf(method, nothings[i]!, who, keyOf("nothing"));
            // Who may not do it at all is refused before anything is looked up.
            if (nothing.http !== 403) expect(nothing.statements.length).toBeGreaterThan(0);
            expect(seen).toEqual(nothing);
            expect(JSON.stringify(seen.body)).not.toContain(hidden.word);
          }
        }
      }
      expect(await timeline()).toEqual(before);
    },
  );
});

test("the table has many refusals", () => {
  expect(refused.length).toBeGreaterThan(30);
});

test("statements are recorded inside and outside of transactions", async () => {
  statements.length = 0;
  await server.db.select({ n: count() }).from(event);
  await server.db.transaction((tx) => tx.select({ n: count() }).from(event));
  const [select] = statements;
  expect(statements).toEqual([select!, "begin ", select!]);
});

test("an attempt to use a hidden record does not create an individual for the user", async () => {
  const rows = await server.db.select().from(individual).where(eq(individual.email, "member@example.com"));
  expect(rows).toEqual([]);
});

const posts = readPermissions().filter(
  // Adding somebody to another incident makes them known there.
  ({ request }) => /^POST/.test(request) && request in ofAnIncident && !request.endsWith("elsewhere"),
);

test.each(posts.map(({ request, cells }) => [request, cells] as const))(
  "%s: the stored answer of an Idempotency-Key is given only to its user",
  async (request, cells) => {
    const place = await world.newPlace("Restricted");
    const [one] = ofAnIncident[request]!(place, world);
    const headers = { "idempotency-key": `key-${world.next()}` };
    const send = (role: "participant" | "member") =>
      world.people[role][0]!.call("POST", one!.path, one!.body, headers);
    const expected = (role: string) =>
      Number(cells.find((cell) => cell.role === role && cell.visibility === "Restricted")!.answer);
    const kept = await send("participant");
    expect(kept.http).toBe(expected("participant"));
    const other = await send("member");
    expect(other.http).toBe(expected("member"));
    expect(JSON.stringify(other.body)).not.toContain(place.word);
    if (other.http === 201) expect(other.body.id).not.toBe(kept.body.id);
  },
);

/** The lists that show records of all incidents, and ways to ask each. */
const lists: Readonly<Record<string, string[]>> = {
  "/incidents/": ["sort=reported_at", "sort=-reported_at", "sort=id", "sort=-id", "q=zebra", "status=Active"],
  "/documents/": ["sort=id", "sort=-id", "sort=name", "sort=-name", "q=zebra", "resource_type=reference"],
  "/tasks/": ["sort=resolve_by", "sort=-resolve_by", "sort=id", "q=zebra", "owner=scribe@example.com"],
  "/individuals/": ["sort=id", "sort=-id", "sort=name", "sort=-name", "q=zebra"],
  "/search": ["q=zebra", "q=zebra&type=task,document,individual"],
};

test.each(Object.entries(lists))(
  "pages and cursors of %s do not change when a hidden record is added",
  async (list, queries) => {
    for (const visibility of ["Open", "Restricted", "Open", "Open", "Restricted"] as const)
      await world.newPlace(visibility);
    await sayInCommon();
    const before = await allPages(list, queries);
    expect(before.length).toBeGreaterThan(list === "/search" ? 1 : queries.length);
    // An Open incident of its own for a link would be on the pages.
    for (let i = 0; i < 3; i += 1) await world.newPlace("Restricted", world.openId);
    await sayInCommon();
    expect(await allPages(list, queries)).toEqual(before);
    const all = await allPages(list, queries, world.admin);
    expect(all).not.toEqual(before);
  },
);

/** All pages of two, for each query. */
async function allPages(list: string, queries: string[], person = world.people.member[0]!) {
  const pages: unknown[] = [];
  for (const query of queries)
    for await (const page of pagesOf(person, `${list}?limit=2&${query}`)) pages.push(page);
  return pages;
}

/** The word that finds all of them. */
async function sayInCommon(): Promise<void> {
  for (const [table, column] of [
    ["incident", "title"],
    ["document", "name"],
    ["task", "description"],
    ["individual", "name"],
  ] as const) {
    const [to, said] = [sql.identifier(table), sql.identifier(column)];
    await server.db.execute(
      sql`update ${to} set ${said} = 'zebra ' || ${said} where ${said} not like 'zebra %'`,
    );
  }
}
