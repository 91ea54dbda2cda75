import { beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { auditLog, document, event, individual, taskAssignee } from "../../drizzle/schema/index.ts";
import type { IncidentIds } from "../../tests/support/domain/incident.ts";
import { insertRow } from "../../tests/support/http/catalog.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import { personOf } from "../../tests/support/http/people.ts";
import { insertTask } from "../../tests/support/http/task.ts";

let { server, admin, member, ids } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, admin, member, ids } = given);
});
beforeAll(async () => {
  for (const name of ["zoe", "bare", "dora"])
    await insertRow(server.db, individual, { name, email: `${name}@example.com` });
});

const due = "2026-12-01T12:00:00.000Z";
const whole = {
  description: "Free some disk",
  status: "Open",
  owner: null,
  assignees: [] as string[],
  resolve_by: due,
  reminders: true,
};

async function created(values: object = {}): Promise<number> {
  const body = { incident_id: ids.incidentId, description: "Free some disk", resolve_by: due, ...values };
  const answer = await member.call("POST", "/tasks/", body);
  expect(answer).toMatchObject({ http: 201 });
  return answer.body.id;
}

const timeline = () =>
  server.db.select().from(event).where(eq(event.incidentId, ids.incidentId)).orderBy(event.id);
const kinds = async (id: number) =>
  (await timeline()).filter(({ data }) => data.task_id === id).map(({ kind }) => kind);
const person = (email: string, name = email.split("@")[0]) => ({ id: expect.any(Number), name, email });

describe("a person unknown to the actor", () => {
  const unknown = "mistyped@example.com";
  const refusal = (field: string, email: string) => ({
    http: 400,
    body: {
      field,
      detail: `Nobody here has the address ${email}: check it, or add the person to the incident first`,
    },
  });
  const post = (fields: object) =>
    member.call("POST", "/tasks/", { incident_id: ids.incidentId, description: "Free some", ...fields });
  const people = (email: string) => server.db.select().from(individual).where(eq(individual.email, email));

  test.each([
    ["owner", { owner: unknown }],
    ["assignees", { owner: "bob@example.com", assignees: ["alice@example.com", unknown] }],
  ])("is refused as %s, and is not created", async (field, fields) => {
    expect(await post(fields)).toMatchObject(refusal(field, unknown));
    const id = await created();
    expect(await member.call("PUT", `/tasks/${id}`, { ...whole, ...fields, version: 1 })).toMatchObject(
      refusal(field, unknown),
    );
    expect(await people(unknown)).toEqual([]);
  });

  test("gets the same refusal if they are known elsewhere", async () => {
    const email = "elsewhere@example.com";
    await insertRow(server.db, individual, { name: "Elsewhere", email, listed: false });
    expect(await post({ owner: email })).toMatchObject(refusal("owner", email));
  });

  test("is refused unless it is the actor", async () => {
    const newcomer = await personOf(server, "newcomer@example.com");
    const body = { incident_id: ids.incidentId, description: "Mine", owner: "newcomer@example.com" };
    expect(await newcomer.call("POST", "/tasks/", body)).toMatchObject({ http: 201 });
  });
});

describe("POST /tasks/", () => {
  test("answers 201 with the task and its people, and adds a timeline event", async () => {
    const { http, body, headers } = await member.call("POST", "/tasks/", {
      incident_id: ids.incidentId,
      description: " Free some\n@disk ",
      owner: "Alice@Example.com",
      assignees: ["zoe@example.com", "bob@example.com", "ZOE@example.com", "bare"],
    });
    const at = server.clock.now().toISOString();
    expect({ http, body }).toEqual({
      http: 201,
      body: {
        id: expect.any(Number),
        incident_id: ids.incidentId,
        description: " Free some\n@disk ",
        status: "Open",
        creator: person("carol@example.com"),
        owner: person("alice@example.com"),
        assignees: ["bare@example.com", "bob@example.com", "zoe@example.com"].map((email) => person(email)),
        resolve_by: "2026-11-21T12:00:00.000Z",
        resolved_at: null,
        document_id: null,
        external_id: null,
        reminders: true,
        version: 1,
        created_at: at,
        updated_at: at,
      },
    });
    expect(headers.get("location")).toBe(`/tasks/${body.id}`);
    expect(headers.get("etag")).toBe('"1"');
    expect(await member.call("GET", headers.get("location")!)).toMatchObject({ http: 200, body });
    expect((await timeline()).at(-1)).toMatchObject({
      actor: "carol@example.com",
      source: "core",
      kind: "task.created",
      description: "Task added: Free some @disk",
      data: { task_id: body.id },
    });
  });

  test("of a review is due in a week, of another document in a day", async () => {
    const { incidentId } = ids;
    const at = server.clock.now();
    const stamps = { createdAt: at, updatedAt: at };
    const documents = await server.db
      .insert(document)
      .values([
        { name: "Review", resourceType: "review", incidentId, ...stamps },
        { name: "Runbook", resourceType: "reference", ...stamps },
      ])
      .returning();
    const dues: string[] = [];
    for (const { id: document_id } of documents) {
      const id = await created({ document_id, resolve_by: undefined });
      const { body } = await member.call("GET", `/tasks/${id}`);
      expect(body.document_id).toBe(document_id);
      dues.push(body.resolve_by);
    }
    expect(dues).toEqual(["2026-11-27T12:00:00.000Z", "2026-11-21T12:00:00.000Z"]);
  });

  test.each([
    ["no incident", { incident_id: undefined }, "incident_id"],
    ["a missing incident", { incident_id: 4711 }, "incident_id"],
    ["a missing document", { document_id: 4711 }, "document_id"],
    ["an empty description", { description: " \n " }, "description"],
    ["NUL", { description: "a\0b" }, "description"],
    ["a long description", { description: "a".repeat(20_001) }, "description"],
    ["an invalid owner", { owner: "two@at@example.com" }, "owner"],
    ["an owner that looks like another", { owner: "\u212aate@example.com" }, "owner"],
    ["an invalid assignee", { assignees: ["good@example.com", "not one"] }, "assignees"],
    ["a hundred and one assignees", { assignees: Array.from({ length: 101 }, () => "a") }, "assignees"],
    ["a day for an instant", { resolve_by: "2026-12-01" }, "resolve_by"],
    ["an instant without offset", { resolve_by: "2026-12-01T12:00:00" }, "resolve_by"],
    ["the year 99, which would come back as 1999", { resolve_by: "0099-12-31T23:59:59Z" }, "resolve_by"],
    ["the year 0", { resolve_by: "0000-01-01T00:00:00Z" }, "resolve_by"],
    ["a time after the year 9999 in UTC", { resolve_by: "9999-12-31T23:59:00-23:59" }, "resolve_by"],
    ["month 13", { resolve_by: "2026-13-01T00:00:00Z" }, "resolve_by"],
    ["a status, which a new task cannot choose", { status: "Resolved" }, "status"],
    ["reminders as text", { reminders: "true" }, "reminders"],
  ])("refuses %s, naming the field but not the value", async (_, change, field) => {
    const body = { incident_id: ids.incidentId, description: "Free some disk", ...change };
    const answer = await member.call("POST", "/tasks/", body);
    expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input", field } });
    for (const value of Object.values(change)) {
      if (typeof value === "string" && value.length > 8)
        expect(JSON.stringify(answer.body)).not.toContain(value);
    }
  });

  test.each(["0100-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"])(
    "accepts %s, and no other century",
    async (at) => {
      const id = await created({ resolve_by: at });
      expect((await member.call("GET", `/tasks/${id}`)).body.resolve_by).toBe(at);
    },
  );

  test("refuses a document of another incident", async () => {
    const other = await insertIncidentLike(ids);
    const answer = await member.call("POST", "/tasks/", {
      incident_id: other,
      description: "x",
      document_id: ids.documentId,
    });
    expect(answer).toMatchObject({ http: 400, body: { field: "document_id" } });
  });
});

async function insertIncidentLike({ incidentTypeId, incidentPriorityId }: IncidentIds): Promise<number> {
  const { body } = await member.call("POST", "/incidents/", {
    title: "Other",
    description: "x",
    incident_type_id: incidentTypeId,
    incident_priority_id: incidentPriorityId,
  });
  return body.id;
}

describe("PUT /tasks/{task_id}", () => {
  test("replaces the given version, and increments it", async () => {
    const id = await created({ assignees: ["bob@example.com"] });
    const change = { ...whole, description: "New", owner: "dora@example.com", reminders: false, version: 1 };
    const { http, body, headers } = await member.call("PUT", `/tasks/${id}`, change);
    expect({ http, body }).toMatchObject({
      http: 200,
      body: { description: "New", owner: person("dora@example.com"), assignees: [], version: 2 },
    });
    expect(headers.get("etag")).toBe('"2"');
    expect((await member.call("GET", `/tasks/${id}`)).body).toEqual(body);
    expect(await kinds(id)).toEqual(["task.created", "task.updated"]);
  });

  test("resolves, cancels and reopens, each with its event", async () => {
    const id = await created();
    let version = 1;
    for (const status of ["Resolved", "Resolved", "Open", "Cancelled", "Resolved"]) {
      server.clock.advance(60);
      const { body } = await member.call("PUT", `/tasks/${id}`, { ...whole, status, version });
      expect(body).toMatchObject({ status, version: ++version });
      expect(body.resolved_at !== null).toBe(status === "Resolved");
    }
    const told = ["resolved", "updated", "reopened", "cancelled", "resolved"].map((kind) => `task.${kind}`);
    expect(await kinds(id)).toEqual(["task.created", ...told]);
    const both = { ...whole, status: "Open", description: "And more", version };
    await member.call("PUT", `/tasks/${id}`, both);
    expect((await kinds(id)).slice(-2)).toEqual(["task.reopened", "task.updated"]);
  });

  test("with another version is 409 and changes neither the task nor the timeline", async () => {
    const id = await created();
    for (const version of [2, 99, 2_147_483_646]) {
      const answer = await member.call("PUT", `/tasks/${id}`, { ...whole, description: "Lost", version });
      expect(answer).toMatchObject({ http: 409, body: { code: "conflict" } });
      expect(answer.body.detail).toContain("version 1");
    }
    expect((await member.call("GET", `/tasks/${id}`)).body).toMatchObject({ ...whole, version: 1 });
    expect(await kinds(id)).toEqual(["task.created"]);
  });

  test("of twenty concurrent requests, one succeeds and the others get 409", async () => {
    const id = await created();
    for (let i = 0; i < 20; i += 1)
      await insertRow(server.db, individual, { name: `n${i}`, email: `n${i}@example.com` });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        member.call("PUT", `/tasks/${id}`, { ...whole, assignees: [`n${i}@example.com`], version: 1 }),
      ),
    );
    const https = answers.map(({ http }) => http).sort();
    expect(https).toEqual([200, ...Array.from({ length: 19 }, () => 409)]);
    const { body } = await member.call("GET", `/tasks/${id}`);
    expect(body).toEqual(answers.find(({ http }) => http === 200)!.body);
    expect(await kinds(id)).toEqual(["task.created", "task.updated"]);
  });

  test.each(["description", "status", "owner", "assignees", "resolve_by", "reminders", "version"])(
    "without %s is refused, since an omitted field would be lost",
    async (field) => {
      const id = await created();
      const answer = await member.call("PUT", `/tasks/${id}`, { ...whole, version: 1, [field]: undefined });
      expect(answer).toMatchObject({ http: 400, body: { field } });
    },
  );

  test("of a task in a document changes its reminders only", async () => {
    const { incidentId, documentId, alice: ownerId, bob } = ids;
    const resolveBy = new Date(due);
    const kept = { incidentId, documentId, externalId: "7", ownerId, resolveBy };
    const id = await insertTask(server, kept);
    await server.db.insert(taskAssignee).values({ taskId: id, individualId: bob });
    const same = { ...whole, owner: "alice@example.com", assignees: ["bob@example.com"], version: 1 };
    for (const change of [
      { description: "Other" },
      { status: "Resolved" },
      { owner: null },
      { assignees: [] },
      { assignees: ["bob@example.com", "carol@example.com"] },
      { resolve_by: "2026-12-01T12:00:00.001Z" },
    ]) {
      const answer = await member.call("PUT", `/tasks/${id}`, { ...same, ...change });
      expect([change, answer.http, answer.body.detail]).toEqual([
        change,
        409,
        "This task is kept in its document: change it there",
      ]);
    }
    const { http, body } = await member.call("PUT", `/tasks/${id}`, { ...same, reminders: false });
    expect([http, body.reminders, body.version]).toEqual([200, false, 2]);
  });
});

describe("DELETE /tasks/{task_id}", () => {
  test("deletes it with its assignees and an audit entry; a second call is 404", async () => {
    const id = await created({ assignees: ["bob@example.com"] });
    expect(await admin.call("DELETE", `/tasks/${id}`)).toMatchObject({ http: 204, body: undefined });
    expect((await admin.call("GET", `/tasks/${id}`)).http).toBe(404);
    expect((await admin.call("DELETE", `/tasks/${id}`)).http).toBe(404);
    const noted = await server.db
      .select()
      .from(auditLog)
      .where(eq(auditLog.subject, String(id)));
    expect(noted).toMatchObject([
      { actor: "root@example.com", action: "task.deleted", address: "127.0.0.1" },
    ]);
    expect(await kinds(id)).toEqual(["task.created", "task.deleted"]);
  });
});

test("a task that is gone from its document is hidden from everybody", async () => {
  const { incidentId, documentId } = ids;
  const gone = { documentId, externalId: "8", deletedAt: server.clock.now(), description: "tombstone" };
  const id = await insertTask(server, { incidentId, ...gone });
  for (const method of ["GET", "PUT", "DELETE"]) {
    const body = method === "PUT" ? { ...whole, version: 1 } : undefined;
    expect([method, (await admin.call(method, `/tasks/${id}`, body)).http]).toEqual([method, 404]);
  }
  for (const query of ["limit=200", "q=tombstone", `incident_id=${incidentId}&sort=-id`]) {
    const { body } = await admin.call("GET", `/tasks/?${query}`);
    expect(body.items.map((item: { id: number }) => item.id)).not.toContain(id);
  }
});
