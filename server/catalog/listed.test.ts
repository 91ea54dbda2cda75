import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import * as schema from "../../drizzle/schema/index.ts";
import { fakeApplication, fakeTerm } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { insertRow } from "../../tests/support/http/catalog.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let [admin, member] = [] as unknown as [Person, Person];
beforeAll(async () => {
  const plugins = pluginsOf(fakeTerm({}, { slug: "glossary" }), fakeApplication({}, { slug: "inventory" }));
  server = await startTestServer({}, plugins);
  admin = await personOf(server, "root@example.com", ["admin"]);
  member = await personOf(server, "carol@example.com");
});
afterAll(() => server[Symbol.asyncDispose]());

const insert = {
  term: (source: string) => insertRow(server.db, schema.term, { text: "leak", ...of(source) }),
  definition: (source: string) => insertRow(server.db, schema.definition, { text: "leak", ...of(source) }),
  application: (source: string) => insertRow(server.db, schema.application, { name: "Shop", ...of(source) }),
};
let n = 0;
const of = (source: string) => ({ source, externalId: String(++n) });
const records = [
  ["term", "glossary"],
  ["definition", "glossary"],
  ["application", "inventory"],
] as const;

test.each(records)(
  "a %s of a configured source must be deleted there, since the next sync would restore it",
  async (one, source) => {
    const path = `/${one}s/${await insert[one](source)}`;
    const before = (await admin.call("GET", path)).body;
    expect(await admin.call("DELETE", path)).toMatchObject({
      http: 409,
      body: {
        code: "conflict",
        detail: `This ${one} comes from ${source}, which would bring it back: delete it there`,
      },
    });
    expect((await admin.call("GET", path)).body).toEqual(before);
    // A user who may not delete learns nothing about the source.
    expect((await member.call("DELETE", path)).body.detail).toBe(`Only an admin can delete ${one}s`);
    expect(await server.db.$count(schema.auditLog, sql`action = ${`${one}.deleted`}`)).toBe(0);
  },
);

test.each([
  ["term", "inventory"],
  ["definition", "old-glossary"],
  ["application", "glossary"],
] as const)("an admin can delete a %s of %s, which is no longer configured", async (one, source) => {
  const path = `/${one}s/${await insert[one](source)}`;
  expect((await admin.call("DELETE", path)).http).toBe(204);
  expect((await admin.call("GET", path)).http).toBe(404);
});
