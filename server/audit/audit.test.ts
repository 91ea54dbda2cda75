import { beforeEach, expect, test } from "bun:test";
import { audit } from "../../core/audit.ts";
import { auditLog } from "../../drizzle/schema/index.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";

let { server, admin, member } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, admin, member } = given);
});

const hour = (hours: number) => new Date(Date.UTC(2026, 10, 1, hours));
beforeEach(async () => {
  await server.db.delete(auditLog);
  const issued = { action: "access.issued", subject: "reader", data: { lease_id: 7 } } as const;
  await audit(server.db, { at: hour(1), actor: "carol@example.com", ...issued, address: "192.0.2.1" });
  await audit(server.db, { at: hour(2), actor: "dana@example.com", ...issued });
  await audit(server.db, { at: hour(3), actor: "carol@example.com", action: "token.revoked" });
  // At the same time, as when several are written at once.
  await audit(server.db, { at: hour(3), actor: "system", action: "task.deleted", subject: "7" });
});

const shown = async (query: Record<string, string>) => {
  const { http, body } = await admin.call("GET", `/audit?${new URLSearchParams(query)}`);
  expect([http, body.detail]).toEqual([200, undefined]);
  return {
    next: body.next_cursor as string | null,
    actions: body.items.map(
      (one: { actor: string; action: string }) => `${one.actor.split("@")[0]} ${one.action}`,
    ),
  };
};

test("GET /audit lists the newest entries first, with all that is recorded", async () => {
  const { body } = await admin.call("GET", "/audit/");
  expect(body.items).toHaveLength(4);
  expect(body.items[3]).toEqual({
    id: expect.any(Number),
    at: "2026-11-01T01:00:00.000Z",
    actor: "carol@example.com",
    action: "access.issued",
    address: "192.0.2.1",
    subject: "reader",
    data: { lease_id: 7 },
  });
  expect((await shown({ sort: "at", limit: "1" })).actions).toEqual(["carol access.issued"]);
});

test.each<[Record<string, string>, string[]]>([
  [{ actor: "carol@example.com" }, ["carol token.revoked", "carol access.issued"]],
  [{ action: "access.issued" }, ["dana access.issued", "carol access.issued"]],
  [{ subject: "reader", actor: "dana@example.com" }, ["dana access.issued"]],
  [{ since: "2026-11-01T02:00:00Z", until: "2026-11-01T03:00:00Z" }, ["dana access.issued"]],
  [{ actor: "Carol" }, ["carol token.revoked", "carol access.issued"]],
  [{ actor: "system" }, ["system task.deleted"]],
  [{ actor: "system@example.com" }, []],
])("the filters %j select %j", async (query, expected) => {
  expect((await shown(query)).actions).toEqual(expected);
});

test("pages show each entry once, also those of the same time", async () => {
  const all = (await shown({})).actions;
  const paged: string[] = [];
  let next: string | null = null;
  do {
    const page = await shown({ limit: "1", ...(next !== null && { cursor: next }) });
    paged.push(...page.actions);
    next = page.next;
  } while (next !== null);
  expect(paged).toEqual(all);
});

test("a member, an unknown action, no user name and a time without an offset are refused", async () => {
  expect(await member.call("GET", "/audit/")).toMatchObject({
    http: 403,
    body: { detail: "Only admins can read the audit log" },
  });
  expect(await admin.call("GET", "/audit?action=shouted")).toMatchObject({
    http: 400,
    body: { field: "action" },
  });
  expect(await admin.call("GET", "/audit?actor=a+b")).toMatchObject({
    http: 400,
    body: { field: "actor", detail: "The user name must look like name@example.com" },
  });
  expect(await admin.call("GET", "/audit?since=2026-11-01")).toMatchObject({
    http: 400,
    body: { field: "since" },
  });
});
