import { afterAll, beforeAll, expect, test } from "bun:test";
import { document } from "../../drizzle/schema/index.ts";
import { fakeDocument } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { insertEmptyIncident } from "../../tests/support/http/participants.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

const drafted = "# Review\n\n## Timeline\n";
let text = drafted;
const fake = fakeDocument({
  get: () => ({ name: "Review" }),
  text: () => ({ text }),
  update: (call) => {
    text = call.text!;
    return {};
  },
});
let server: TestServer;
let member: Person;
let path: string;
beforeAll(async () => {
  server = await startTestServer({}, pluginsOf(fake));
  member = await personOf(server, "carol@example.com");
  const at = server.clock.now();
  const incidentId = await insertEmptyIncident(server.db, await insertIncident(server.db, at), at);
  const place = { pluginSlug: fake.plugin.slug, resourceId: "r1", resourceType: "review" };
  await server.db
    .insert(document)
    .values({ name: "Review", incidentId, ...place, createdAt: at, updatedAt: at });
  path = `/incidents/${incidentId}`;
  expect((await member.call("POST", `${path}/events/`, { description: "It was the disk" })).http).toBe(201);
});
afterAll(async () => {
  fake.assertExpected();
  await server[Symbol.asyncDispose]();
});

test("adding to a post-mortem whose plugin has no versions replaces no edit made since it was read", async () => {
  const edit = () => {
    text = `${drafted}\nSomebody's words\n`;
    return { name: "Review" };
  };
  // The last call before the text is compared.
  fake.answer({ get: [edit, () => ({ name: "Review" })] });
  const refused = await member.call("POST", `${path}/postmortem/`, {});
  expect([refused.http, refused.body.detail]).toEqual([409, "This text has changed since you read it"]);
  expect(fake.to("update")).toEqual([]);
  const { http, body } = await member.call("POST", `${path}/postmortem/`, {});
  expect([http, body.version]).toEqual([200, null]);
  for (const words of ["Somebody's words", "It was the disk"]) expect(text).toContain(words);
});
