import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { clicked } from "./support/browser/browser.ts";
import { fieldsOf, PageReader } from "./support/browser/reader.ts";
import { ofNoIncident } from "./support/http/permission_catalog.ts";
import {
  addressOf,
  pagesOfAnIncident,
  pagesOfNoIncident,
  texts,
  type Use,
  withoutPage,
} from "./support/http/permission_pages.ts";
import { clearTheWay } from "./support/http/permission_requests.ts";
import { createWorld, nowhere, type Place, users, type World } from "./support/http/permission_world.ts";
import { type Permission, type Role, readPermissions } from "./support/http/permissions.ts";
import { startTestServer, type TestServer } from "./support/http/server.ts";

// Tests docs/permissions.md over the pages: what a row allows happens, and what it refuses is refused there as well.

/** Where a page answers otherwise than the API: role, visibility and answer by row. */
const differing: Readonly<Record<string, string>> = {
  // The incident is in the address, not in the body.
  "POST /tasks/ member Restricted": "404",
  "POST /documents/ member Restricted": "404",
  // By the address: they appear to be new, as with POST /individuals/.
  "POST /incidents/{incident_id}/participants/ of a participant elsewhere member Restricted": "done",
};

const permissions = readPermissions().filter(({ cells }) => cells[0]?.role !== "everybody");
let server: TestServer;
let world: World;
let readers: Record<Role, PageReader[]>;
const tokens = new Map<PageReader, string>();
/** Tables of what belongs to an incident. */
let tables: string[];
beforeAll(async () => {
  server = await startTestServer({
    pluginDocument: "markdown",
    pluginCredential: "postgresql-role",
    rateGenerate: 100_000,
  });
  world = await createWorld(server);
  readers = {} as typeof readers;
  for (const [role, people] of Object.entries(users))
    readers[role as Role] = await Promise.all(people.map(([user, groups]) => readerOf(user, groups)));
  const rows = await server.db.execute<{ name: string }>(sql`
    select table_name as name from information_schema.columns join information_schema.tables using (table_name)
    where column_name = 'incident_id' and table_type = 'BASE TABLE'`);
  tables = rows.map(({ name }) => name);
});
afterAll(() => server[Symbol.asyncDispose]());

let signingIn = Promise.resolve();
/** One after the other, because the issuer has one user at a time. */
async function readerOf(user = "nobody@example.com", groups: string[] = []): Promise<PageReader> {
  const made = signingIn.then(() => PageReader.signIn(server, user, groups));
  signingIn = made.then(() => {});
  const reader = await made;
  tokens.set(reader, fieldsOf((await reader.open("/app/report")).html, "/app/report").csrf!);
  if (user.startsWith("nobody")) reader.browser.cookies.clear();
  return reader;
}

async function answerOf(reader: PageReader, { path, fields, shows }: Use) {
  const csrf = tokens.get(reader)!;
  const sent = { csrf, key: crypto.randomUUID(), ...fields };
  const response = await reader.browser.request(
    `${server.url}${path}`,
    fields && { method: "POST", body: new URLSearchParams(sent), headers: clicked },
  );
  const { status, headers } = response;
  const isStream = headers.get("content-type")?.startsWith("text/event-stream");
  const html = isStream ? "" : await response.text();
  if (isStream) await response.body?.cancel();
  if (headers.get("location")?.startsWith("/app/sign_in?")) return { answer: "401", html };
  if (status === 200 && shows !== undefined)
    return { answer: html.includes(shows) ? "with" : "without", html };
  return { answer: status === 200 || status === 303 ? "done" : String(status), html };
}

/** Without the ids and keys that its answer repeats. */
const comparable = (html: string) =>
  html
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "key")
    .replaceAll(/name="csrf" value="[^"]*"/g, "csrf")
    .replaceAll(/value="\d+"/g, 'value="N"')
    .replaceAll(/\be\d+\b/g, "eN")
    .replaceAll(/(incidents|documents|requests|leases)\/\d+/g, "$1/N");

/** Changes when a row of the incident does, or of what belongs to none. */
async function state(id: number): Promise<string> {
  const parts = [
    sql`select i::text as row from incident i where id = ${id}`,
    sql`select l::text from incident_link l where linked_id = ${id}`,
    sql`select count(*)::text from incident`,
    sql`select c::text from document_content c`,
    sql`select r::text from access_role r`,
    sql`select r::text from access_request r`,
    sql`select l::text from access_lease l`,
    sql`select user_name from session`,
    ...tables.map((name) => sql`select t::text from ${sql.identifier(name)} t where incident_id = ${id}`),
  ];
  const all = sql.join(parts, sql` union all `);
  const [row] = await server.db.execute<{ hash: string }>(
    sql`select md5(string_agg(row, ' ' order by row)) as hash from (${all}) rows`,
  );
  return row!.hash;
}

/** The answer, if it is the right one for what has happened; otherwise, what is wrong. */
async function checked(reader: PageReader, use: Use, missing: Use | undefined, id: number): Promise<string> {
  const before = await state(id);
  const { answer, html } = await answerOf(reader, use);
  const isChanged = (await state(id)) !== before;
  if (isChanged !== (use.fields !== undefined && answer === "done") && !use.isQuiet)
    return `${answer}, but ${isChanged ? "something" : "nothing"} changed`;
  if (answer === "403" && !html.includes('role="alert"') && !/<p>[^<]+\.<\/p>/.test(html))
    return "403 without a reason";
  if (answer !== "404" || missing === undefined) return answer;
  const other = await answerOf(reader, missing);
  return comparable(other.html) === comparable(html) ? answer : "404, but not as for a missing id";
}

const translated = (request: string, { role, visibility, answer }: Permission["cells"][number]): string => {
  const differs = differing[`${request} ${role} ${visibility}`];
  if (differs) return differs;
  // The incident is looked up before what one may do there.
  if (role === "member" && visibility === "Restricted" && answer === "403") return "404";
  return /^20\d$/.test(answer) ? "done" : answer;
};

test("each row of docs/permissions.md has a page, or a reason why not", () => {
  const wrong = permissions.filter(({ request }) => {
    const reasons = withoutPage.filter(([pattern]) => pattern.test(request));
    return Number(request in pagesOfAnIncident) + Number(request in pagesOfNoIncident) + reasons.length !== 1;
  });
  expect(wrong.map(({ request }) => request)).toEqual([]);
  const unused = withoutPage.filter(([pattern]) => !permissions.some(({ request }) => pattern.test(request)));
  expect(unused).toEqual([]);
  const known = new Set(permissions.map(({ request }) => request));
  expect(
    [...Object.keys(pagesOfAnIncident), ...Object.keys(pagesOfNoIncident)].filter((one) => !known.has(one)),
  ).toEqual([]);
});

describe("of an incident", () => {
  test.each(
    permissions
      .filter(({ request }) => request in pagesOfAnIncident)
      .map((one) => [one.request, one] as const),
  )("%s", async (request, { cells }) => {
    const seen: [string, string][] = [];
    for (const visibility of ["Open", "Restricted"] as const) {
      let place: Place | undefined;
      for (const cell of cells.filter((one) => (one.visibility ?? visibility) === visibility))
        for (const reader of readers[cell.role as Role]) {
          if (!place) {
            place = await world.newPlace(visibility);
            await clearTheWay(world, request, place);
          }
          const use = pagesOfAnIncident[request]!(place, world);
          const gone = { ...nowhere(place), linkId: 900_000_009, linkedId: place.linkedId };
          const missing = pagesOfAnIncident[request]!(gone, world);
          const answer = await checked(reader, use, missing, place.incidentId);
          const of = `${cell.role}, ${visibility}: `;
          seen.push([of + answer, of + translated(request, cell)]);
          if (use.fields && answer === "done") place = undefined;
        }
    }
    expect(seen.map(([answer]) => answer)).toEqual(seen.map(([, expected]) => expected));
  });
});

describe("of no incident", () => {
  test.each(
    permissions
      .filter(({ request }) => request in pagesOfNoIncident)
      .map((one) => [one.request, one] as const),
  )("%s", async (request, { cells }) => {
    for (const cell of cells) {
      const role = cell.role as Role;
      const prepared = await ofNoIncident[request]!(world, role);
      const isSignOut = request === "DELETE /tokens/current" && role !== "nobody";
      const reader = isSignOut ? await readerOf(...users[role][0]!) : readers[role][0]!;
      const use = pagesOfNoIncident[request]!(prepared);
      const missing = { ...use, path: use.path.replace(/\d+/, "900000001") };
      const answer = await checked(reader, use, missing, world.openId);
      // Signing out is done for somebody who is signed out already.
      const expected =
        use.path.endsWith("sign_out") && role === "nobody" ? "done" : translated(request, cell);
      expect([role, answer]).toEqual([role, expected]);
    }
  });
});

describe("in a Restricted incident", () => {
  const use = (place: Place, action: string, fields: Record<string, string | number>): Use => ({
    path: `${addressOf(place)}/${action}`,
    fields: texts(fields),
  });

  test("the commander can remove others, and somebody who leaves can no longer see it", async () => {
    const place = await world.newPlace("Restricted");
    const commander = await readerOf("commander@example.com");
    const removed = use(place, "leave", { person: place.scribeId });
    expect(await checked(commander, removed, undefined, place.incidentId)).toBe("done");
    const [participant] = readers.participant;
    expect(await checked(participant!, use(place, "leave", {}), undefined, place.incidentId)).toBe("done");
    expect((await answerOf(participant!, { path: addressOf(place) })).answer).toBe("404");
  });

  test("what belongs to it is not found under another one", async () => {
    const [hidden, open] = [await world.newPlace("Restricted"), await world.newPlace("Open")];
    const gone = { ...nowhere(hidden), linkId: 900_000_009 };
    const uses = (from: Place) => [
      use(open, "leave", { person: from.scribeId }),
      use(open, "role", { person: from.scribeId, role: "liaison" }),
      use(open, "task-done", { task: from.taskId }),
      use(open, "unlink", { link: from.linkId }),
      use(open, "amend", { entry: from.eventId, version: 1, text: "Seen" }),
    ];
    const [member] = readers.member;
    const [hiddenUses, goneUses] = [uses(hidden), uses(gone)];
    for (const [index, one] of hiddenUses.entries())
      expect([one.path, await checked(member!, one, goneUses[index], hidden.incidentId)]).toEqual([
        one.path,
        "404",
      ]);
  });
});
