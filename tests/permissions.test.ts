import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Person } from "./support/http/people.ts";
import { ofNobody, ofNoIncident } from "./support/http/permission_catalog.ts";
import { clearTheWay, ofAnIncident, type Request } from "./support/http/permission_requests.ts";
import { createWorld, type World } from "./support/http/permission_world.ts";
import { type Permission, type Role, readPermissions } from "./support/http/permissions.ts";
import { startTestServer, type TestServer } from "./support/http/server.ts";

// Tests docs/permissions.md cell by cell: the page has the expected answers.

const permissions = readPermissions();
const isOpen = ({ cells }: Permission) => cells[0]?.role === "everybody";
const isOfAnIncident = ({ cells }: Permission) => cells.some(({ visibility }) => visibility !== undefined);

let server: TestServer;
let world: World;
beforeAll(async () => {
  server = await startTestServer({
    pluginDocument: "markdown",
    pluginCredential: "postgresql-role,aws-web-identity",
    mtlsUrl: "https://svc.example.com:8443",
  });
  world = await createWorld(server);
});
afterAll(() => server[Symbol.asyncDispose]());

const methodOf = ({ route }: Permission) => route.split(" ")[0]!.replace("ALL", "GET");

const noRequest = (request: string, file: string) =>
  `tests/support/http/${file} has no request for ${request}: add one`;

/** The answer to the person, in the table's words. */
async function answerTo(person: Person, method: string, request: Request): Promise<string> {
  const { path, body, headers, shows } = request;
  const answer = await person.call(method, path, body, headers);
  if (answer.http !== 200 || shows === undefined) return String(answer.http);
  return JSON.stringify(answer.body.items ?? answer.body).includes(shows) ? "with" : "without";
}

/** The answer, if all are the same; otherwise, all of them for the test's message. */
const together = (answers: string[]) => [...new Set(answers)].join(" or ");

const line = ({ cells }: Permission, answers: string[]) =>
  cells.map(({ role, visibility }, i) => [role, visibility ?? "", answers[i]]);
const expected = (permission: Permission) =>
  line(
    permission,
    permission.cells.map(({ answer }) => answer),
  );

describe("docs/permissions.md", () => {
  test("has every route of the application, and no others", () => {
    // The pages call what these routes call (web/pages.test.ts).
    const isPage = ({ path }: { path: string }) => path === "/" || /^\/app(\/|$)/.test(path);
    const routes = server.app.routes
      .filter((route) => !isPage(route))
      .map(({ method, path }) => `${method} ${path}`);
    const described = new Set(permissions.map(({ route }) => route));
    expect(routes.filter((route) => !described.has(route))).toEqual([]);
    expect([...described].filter((route) => !routes.includes(route))).toEqual([]);
  });

  test("has each request once, with an answer for everybody concerned", () => {
    const requests = permissions.map(({ request }) => request);
    expect(requests.filter((request, i) => requests.indexOf(request) !== i)).toEqual([]);
    const heads = new Set(
      permissions.map(({ cells }) => cells.map((cell) => [cell.role, cell.visibility].join(" ")).join("|")),
    );
    const of = (role: Role) => `${role} Open|${role} Restricted`;
    expect([...heads]).toEqual([
      ["nobody ", of("member"), of("participant"), of("admin")].join("|"),
      "nobody |member |admin ",
      "everybody ",
    ]);
  });
});

describe("of an incident", () => {
  test.each(permissions.filter(isOfAnIncident).map((one) => [one.request, one] as const))(
    "%s",
    async (request, permission) => {
      const requests = ofAnIncident[request];
      if (!requests) throw new Error(noRequest(request, "permission_requests.ts"));
      const answers: string[] = [];
      for (const { role, visibility } of permission.cells) {
        const seen: string[] = [];
        for (const person of world.people[role as Role]) {
          for (const place of visibility ? [visibility] : (["Open", "Restricted"] as const)) {
            const at = await world.newPlace(place);
            await clearTheWay(world, request, at);
            for (const one of requests(at, world))
              seen.push(await answerTo(person, methodOf(permission), one));
          }
        }
        answers.push(together(seen));
      }
      expect(line(permission, answers)).toEqual(expected(permission));
    },
  );
});

describe("of no incident", () => {
  // A participant of some incident is a member here.
  const peopleOf = (role: Role) =>
    role === "member" ? [...world.people.member, ...world.people.participant] : world.people[role];
  const those = permissions.filter((one) => !isOpen(one) && !isOfAnIncident(one));
  test.each(those.map((one) => [one.request, one] as const))("%s", async (request, permission) => {
    const prepare = ofNoIncident[request];
    if (!prepare) throw new Error(noRequest(request, "permission_catalog.ts"));
    const answers: string[] = [];
    for (const { role } of permission.cells) {
      const seen: string[] = [];
      for (const person of peopleOf(role as Role)) {
        const { as = person, ...one } = await prepare(world, role as Role);
        seen.push(await answerTo(as, methodOf(permission), one));
      }
      answers.push(together(seen));
    }
    expect(line(permission, answers)).toEqual(expected(permission));
  });
});

describe("open to everyone", () => {
  test.each(permissions.filter(isOpen).map((one) => [one.request, one] as const))(
    "%s",
    async (request, permission) => {
      const one = ofNobody[request] ?? { path: request.split(" ")[1]! };
      const seen: string[] = [];
      for (const person of Object.values(world.people).flat())
        seen.push(await answerTo(person, methodOf(permission), one));
      expect(line(permission, [together(seen)])).toEqual(expected(permission));
    },
  );
});
