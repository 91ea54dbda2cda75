import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { document, event, incident, participant } from "../../drizzle/schema/index.ts";
import { insertIncident } from "../../tests/support/incident.ts";
import { type Person, personOf } from "../../tests/support/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/server.ts";

// Who may do what with the documents of which incident. For each request, the answers about a document of:
//   no incident | an Open incident | a Restricted one
// `former` was a participant of the Restricted incident and left. In a list, the answer is whether the document is in it.
const expected = `
  request      | anonymous   | member      | former      | participant | admin
  list         | 401 401 401 | yes yes no  | yes yes no  | yes yes yes | yes yes yes
  search       | 401 401 401 | yes yes no  | yes yes no  | yes yes yes | yes yes yes
  by incident  | 401 401 401 | no  yes no  | no  yes no  | no  yes yes | no  yes yes
  create       | 401 401 401 | 201 201 400 | 201 201 400 | 201 201 201 | 201 201 201
  get          | 401 401 401 | 200 200 404 | 200 200 404 | 200 200 200 | 200 200 200
  update       | 401 401 401 | 200 200 404 | 200 200 404 | 200 200 200 | 200 200 200
  delete       | 401 401 401 | 403 403 403 | 403 403 403 | 403 403 403 | 204 204 204
`;

const places = ["none", "Open", "Restricted"] as const;
type Place = (typeof places)[number];

const [heads, ...lines] = expected
  .trim()
  .split("\n")
  .map((line) => line.split("|").map((cell) => cell.trim().replaceAll(/ +/g, " ")));

let server: TestServer;
let alice: number;
const people: Record<string, Person> = {};
const incidents = {} as Record<"Open" | "Restricted", number>;

beforeAll(async () => {
  server = await startTestServer();
  const at = server.clock.now();
  const { incidentId, bob, incidentTypeId, incidentPriorityId, ...ids } = await insertIncident(server.db, at);
  alice = ids.alice;
  // Alice and Bob take part in the one that insertIncident makes; the Open one has nobody.
  await server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, incidentId));
  await server.db.update(participant).set({ leftAt: at }).where(eq(participant.individualId, bob));
  const [open] = await server.db
    .insert(incident)
    .values({
      ...{ title: "Slow", description: "", incidentTypeId, incidentPriorityId },
      ...{ reportedAt: at, createdAt: at, updatedAt: at },
    })
    .returning();
  incidents.Open = open!.id;
  incidents.Restricted = incidentId;
  people.anonymous = await personOf(server);
  people.member = await personOf(server, "carol@example.com", ["oncall"]);
  people.former = await personOf(server, "bob@example.com");
  people.participant = await personOf(server, "alice@example.com");
  people.admin = await personOf(server, "root@example.com", ["admin"]);
});
afterAll(() => server[Symbol.asyncDispose]());

const fields = { name: "Confidential", description: "zebra", resource_type: "reference" };

async function newDocument(place: Place): Promise<number> {
  const at = server.clock.now();
  const incidentId = place === "none" ? null : incidents[place];
  const { resource_type: resourceType, ...rest } = fields;
  const [row] = await server.db
    .insert(document)
    .values({ ...rest, resourceType, incidentId, createdAt: at, updatedAt: at })
    .returning();
  return row!.id;
}

/** What the person is answered, in the table's words. */
async function attempt(request: string, person: Person, place: Place): Promise<string> {
  const id = await newDocument(place);
  const incidentId = place === "none" ? undefined : incidents[place];
  const listed = async (query: string) => {
    const { http, body } = await person.call("GET", `/documents/?limit=200&${query}`);
    if (http !== 200) return String(http);
    return body.items.some((item: { id: number }) => item.id === id) ? "yes" : "no";
  };
  switch (request) {
    case "list":
      return listed("");
    case "search":
      return listed("q=zebra");
    case "by incident":
      return listed(`incident_id=${incidentId ?? incidents.Open}`);
    case "create":
      return String((await person.call("POST", "/documents/", { ...fields, incident_id: incidentId })).http);
    case "get":
      return String((await person.call("GET", `/documents/${id}`)).http);
    case "update":
      return String(
        (await person.call("PUT", `/documents/${id}`, { ...fields, weblink: null, version: 1 })).http,
      );
    case "delete":
      return String((await person.call("DELETE", `/documents/${id}`)).http);
    default:
      throw new Error(`no such request: ${request}`);
  }
}

describe.each(lines.map(([request, ...cells]) => ({ request: request!, cells })))(
  "$request",
  ({ request, cells }) => {
    test.each(heads!.slice(1).map((who, i) => ({ who, cell: cells[i]! })))(
      "$who: $cell",
      async ({ who, cell }) => {
        const answers: string[] = [];
        for (const place of places) answers.push(await attempt(request, people[who]!, place));
        expect(answers.join(" ")).toBe(cell);
      },
    );
  },
);

test("the table has every request and person", () => {
  expect(heads).toEqual(["request", "anonymous", "member", "former", "participant", "admin"]);
  expect(lines.map((cells) => cells.length)).toEqual(lines.map(() => 6));
  expect(lines).toHaveLength(7);
});

test("hidden is answered as what does not exist, word for word, and nothing of it happens", async () => {
  const id = await newDocument("Restricted");
  const events = () => server.db.select().from(event).where(eq(event.incidentId, incidents.Restricted));
  const before = (await events()).length;
  const free = 999_999;
  const body = { ...fields, weblink: null, version: 1 };
  const pairs = [
    ["GET", `/documents/${id}`, `/documents/${free}`, undefined, undefined],
    ["PUT", `/documents/${id}`, `/documents/${free}`, body, body],
    ["PUT", `/documents/${id}`, `/documents/${free}`, { ...body, version: 9 }, { ...body, version: 9 }],
    ["DELETE", `/documents/${id}`, `/documents/${free}`, undefined, undefined],
    [
      ...["POST", "/documents/", "/documents/"],
      ...[
        { ...fields, incident_id: incidents.Restricted },
        { ...fields, incident_id: free },
      ],
    ],
    ["GET", `/documents/?incident_id=${incidents.Restricted}`, `/documents/?incident_id=${free}`],
  ] as [string, string, string, unknown, unknown][];
  for (const [method, hidden, nothing, hiddenBody, nothingBody] of pairs) {
    const one = await people.member!.call(method, hidden, hiddenBody);
    const other = await people.member!.call(method, nothing, nothingBody);
    expect(one.http).toBe(other.http);
    expect({ ...one.body, request_id: "" }).toEqual({ ...other.body, request_id: "" });
    const names = (headers: Headers) => [...headers.keys()].sort();
    expect(names(one.headers)).toEqual(names(other.headers));
  }
  expect((await events()).length).toBe(before);
});

test("an incident that becomes Restricted is hidden at once; who joins it sees it at once", async () => {
  const id = await newDocument("Open");
  expect((await people.member!.call("GET", `/documents/${id}`)).http).toBe(200);
  await server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, incidents.Open));
  expect((await people.member!.call("GET", `/documents/${id}`)).http).toBe(404);
  expect((await people.participant!.call("GET", `/documents/${id}`)).http).toBe(404);
  await server.db
    .insert(participant)
    .values({ incidentId: incidents.Open, individualId: alice, joinedAt: server.clock.now() });
  expect((await people.participant!.call("GET", `/documents/${id}`)).http).toBe(200);
});
