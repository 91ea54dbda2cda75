import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Database } from "../../../drizzle/client.ts";
import { type Person, personOf } from "./people.ts";
import { listSuite } from "./resource_list_suite.ts";
import { removeSuite } from "./resource_remove_suite.ts";
import { writeSuite } from "./resource_write_suite.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** A resource of the API. */
export interface ResourceCase {
  /** `/teams/` */
  path: string;
  /** `team_id` */
  parameter: string;
  /** Who may write it: members, members for some of its fields, or admins. Only admins delete. */
  writers: "members" | "members in part" | "admins";
  /** The fields of a PUT and a GET. Different numbers make records that can coexist. */
  fields(n: number): Record<string, unknown>;
  /** The fields that a POST may omit. */
  optional: string[];
  /** The text field, of one or more lines, which search covers if there is one. */
  text: string;
  lines: boolean;
  searched: boolean;
  sorts: string[];
  /** The filters of a list, which are named like the fields. */
  filters: string[];
  /** Read-only fields. */
  shown?: Record<string, unknown>;
  /** Changes that make a body invalid, and the field in the error. */
  wrong: [what: string, change: Record<string, unknown>, field: string][];
  /** The unique fields, and the error of a second record. */
  taken?: { fields: string[]; detail: string };
  audit: string;
  /** Inserts a reference to the record, and returns the end of the error. */
  refer?(db: Database, id: number, at: Date): Promise<string>;
}

export interface SuiteContext {
  server: TestServer;
  admin: Person;
  member: Person;
  nobody: Person;
  /** A user with just enough permissions to write the resource. */
  writer: Person;
  at(id: number | string): string;
  /** A number that was not returned before. */
  next(): number;
  create(values?: object): Promise<{ id: number } & Record<string, unknown>>;
}

/** The tests that apply to every resource of the API. Call it at the top of a test file. */
export function resourceSuite(cases: readonly ResourceCase[]): void {
  let server: TestServer;
  let admin: Person;
  let member: Person;
  let nobody: Person;
  let n = 0;
  beforeAll(async () => {
    server = await startTestServer();
    admin = await personOf(server, "root@example.com", ["admin"]);
    member = await personOf(server, "carol@example.com");
    nobody = await personOf(server);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  describe.each(cases.map((one) => [one.path, one] as const))("%s", (path, resource) => {
    const { fields, parameter } = resource;
    const at = (id: number | string) => `${path}${id}`;
    const context = (): SuiteContext => ({
      server,
      admin,
      member,
      nobody,
      at,
      writer: resource.writers === "members" ? member : admin,
      next: () => ++n,
      create: async (values = {}) => {
        const { http, body } = await admin.call("POST", path, { ...fields(++n), ...values });
        expect([http, body]).toMatchObject([201, {}]);
        return body;
      },
    });

    test("requires a valid token", async () => {
      const { create } = context();
      const { id } = await create();
      for (const [method, to] of [
        ["GET", path],
        ["POST", path],
        ["GET", at(id)],
        ["PUT", at(id)],
        ["DELETE", at(id)],
      ] as [string, string][])
        expect((await nobody.call(method, to, method === "GET" ? undefined : {})).http).toBe(401);
    });

    if (resource.writers === "admins") {
      test("only admins may write it, whether it exists or not", async () => {
        const { create, next } = context();
        const before = await create();
        const posted = await member.call("POST", path, fields(next()));
        const put = await member.call("PUT", at(before.id), { ...fields(next()), version: 1 });
        const nothing = await member.call("PUT", at(999_999), { ...fields(next()), version: 1 });
        for (const answer of [posted, put, nothing]) {
          expect(answer.http).toBe(403);
          expect(answer.body).toEqual({ ...put.body, request_id: expect.any(String) });
        }
        expect((await member.call("GET", at(before.id))).body).toEqual(before);
      });
    }

    test("a POST with an Idempotency-Key has an effect once", async () => {
      const { writer, next } = context();
      const headers = { "idempotency-key": `key-${next()}` };
      const whole = fields(next());
      const first = await writer.call("POST", path, whole, headers);
      const again = await writer.call("POST", path, whole, headers);
      expect([again.http, again.body]).toEqual([201, first.body]);
      expect(again.headers.get("location")).toBe(at(first.body.id));
      const other = await writer.call("POST", path, fields(next()), headers);
      expect(other).toMatchObject({ http: 422, body: { code: "idempotency_key_reused" } });
    });

    test.each(["GET", "PUT", "DELETE"])(
      "%s returns 400 for an invalid id, and 404 for an unknown one",
      async (method) => {
        const body = method === "PUT" ? { ...fields(0), version: 1 } : undefined;
        for (const id of ["-1", "0", "1.5", "0x1", "1e3", "%20", "abc", "9".repeat(400), "1;drop", "%00"]) {
          expect([id, await admin.call(method, at(id), body)]).toMatchObject([
            id,
            { http: 400, body: { field: parameter } },
          ]);
        }
        for (const id of ["999999", "999999999999999"])
          expect((await admin.call(method, at(id), body)).http).toBe(404);
      },
    );

    writeSuite(resource, context);
    removeSuite(resource, context);
    listSuite(resource, context);
  });
}
