import { expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { auditLog } from "../../../drizzle/schema/index.ts";
import type { ResourceCase, SuiteContext } from "./resource_suite.ts";

/** The part of `resourceSuite` for DELETE. */
export function removeSuite(resource: ResourceCase, context: () => SuiteContext): void {
  const noted = (id: number) =>
    context()
      .server.db.select()
      .from(auditLog)
      .where(and(eq(auditLog.subject, String(id)), eq(auditLog.action, resource.audit)));

  test("DELETE removes it with an audit entry, and returns 404 the second time", async () => {
    const { admin, at, create } = context();
    const { id } = await create();
    expect(await admin.call("DELETE", at(id))).toMatchObject({ http: 204, body: undefined });
    expect((await admin.call("GET", at(id))).http).toBe(404);
    expect((await admin.call("DELETE", at(id))).http).toBe(404);
    expect(await noted(id)).toMatchObject([{ actor: "root@example.com", address: "127.0.0.1" }]);
  });

  const { refer } = resource;
  if (refer) {
    test("DELETE of a referenced record returns 409 and names the reference", async () => {
      const { server, admin, at, create } = context();
      const { id } = await create();
      const what = await refer(server.db, id, server.clock.now());
      const answer = await admin.call("DELETE", at(id));
      expect([answer.http, answer.body.detail]).toEqual([409, expect.stringMatching(/ is referred to by /)]);
      expect(answer.body.detail).toEndWith(what);
      expect((await admin.call("GET", at(id))).http).toBe(200);
      expect(await noted(id)).toEqual([]);
    });
  }
}
