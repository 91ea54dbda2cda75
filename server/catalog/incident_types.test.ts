import { afterAll, beforeAll, expect, test } from "bun:test";
import * as schema from "../../drizzle/schema/index.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { insertRow } from "../../tests/support/http/catalog.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let admin: Person;
let member: Person;
let ids: IncidentIds;
let n = 0;
beforeAll(async () => {
  server = await startTestServer();
  admin = await personOf(server, "root@example.com", ["admin"]);
  member = await personOf(server, "carol@example.com");
  ids = await insertIncident(server.db, server.clock.now());
});
afterAll(() => server[Symbol.asyncDispose]());

const whole = (change: object) => ({
  name: `Type ${++n}`,
  description: "",
  visibility: "Open",
  commander_service_id: null,
  postmortem: false,
  templates: [],
  ...change,
});
const document = () => insertRow(server.db, schema.document, { name: "Template", resourceType: "template" });
const template = (resource_type: string, document_id: number) => ({ resource_type, document_id });

test("templates are listed by kind, and replaced", async () => {
  const [a, b] = [await document(), await document()];
  const templates = [template("review", a), template("incident", a)];
  const { http, body } = await admin.call("POST", "/incident_types/", whole({ templates }));
  expect([http, body.templates]).toEqual([201, templates.toReversed()]);
  const change = whole({ templates: [template("review", b)] });
  const changed = await admin.call("PUT", `/incident_types/${body.id}`, { ...change, version: 1 });
  expect([changed.http, changed.body.templates]).toEqual([200, change.templates]);
  expect((await member.call("GET", "/incident_types/?limit=1")).body.items).toEqual([changed.body]);
  expect((await admin.call("DELETE", `/documents/${b}`)).body.detail).toBe(
    "This document is referred to by an incident type's templates",
  );
  expect((await admin.call("DELETE", `/incident_types/${body.id}`)).http).toBe(204);
});

test("a document of an incident cannot be a template, whose text would be shown in other incidents", async () => {
  const templates = [template("review", ids.documentId)];
  const refused = await admin.call("POST", "/incident_types/", whole({ templates }));
  expect(refused).toMatchObject({ http: 400, body: { field: "templates.document_id" } });
  const nothing = await admin.call(
    "POST",
    "/incident_types/",
    whole({ templates: [template("review", 999_999)] }),
  );
  expect({ ...refused.body, request_id: "" }).toEqual({ ...nothing.body, request_id: "" });
});

test("two templates of one kind are refused, even if they differ in spaces only", async () => {
  const id = await document();
  const templates = [template("review", id), template(" review", id)];
  const answer = await admin.call("POST", "/incident_types/", whole({ templates }));
  expect(answer).toMatchObject({ http: 400, body: { field: "templates" } });
});

test("a commander service is shown, and cannot be deleted while in use", async () => {
  const service = await insertRow(server.db, schema.service, { name: "Storage" });
  const { body } = await admin.call("POST", "/incident_types/", whole({ commander_service_id: service }));
  expect(body.commander_service_id).toBe(service);
  expect((await admin.call("DELETE", `/services/${service}`)).body.detail).toBe(
    "This service is referred to by an incident type",
  );
  const change = { ...whole({}), version: 1 };
  expect(
    (await admin.call("PUT", `/incident_types/${body.id}`, change)).body.commander_service_id,
  ).toBeNull();
  expect((await admin.call("DELETE", `/services/${service}`)).http).toBe(204);
});

test("if a service is used and deleted concurrently, one request is refused and none fails", async () => {
  for (let i = 0; i < 10; i += 1) {
    const service = await insertRow(server.db, schema.service, { name: `Service ${++n}` });
    const [named, deleted] = await Promise.all([
      admin.call("POST", "/incident_types/", whole({ commander_service_id: service })),
      admin.call("DELETE", `/services/${service}`),
    ]);
    expect(["201 409", "400 204"]).toContain(`${named.http} ${deleted.http}`);
  }
});

test("more than 200 templates are refused", async () => {
  const id = await document();
  const post = (count: number) => {
    const templates = Array.from({ length: count }, (_, i) => template(`kind ${i}`, id));
    return admin.call("POST", "/incident_types/", whole({ templates }));
  };
  expect([(await post(200)).http, (await post(201)).http]).toEqual([201, 400]);
});
