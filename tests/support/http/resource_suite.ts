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
  let n = 0;
  beforeAll(async () => {
    server = await startTestServer();
    admin = await personOf(server, "root@example.com", ["admin"]);
    member = await personOf(server, "carol@example.com");
  });
  afterAll(() => server[Symbol.asyncDispose]());

  describe.each(cases.map((one) => [one.path, one] as const))("%s", (path, resource) => {
    const { fields } = resource;
    const at = (id: number | string) => `${path}${id}`;
    const context = (): SuiteContext => ({
      server,
      admin,
      member,
      at,
      writer: resource.writers === "members" ? member : admin,
      next: () => ++n,
      create: async (values = {}) => {
        const { http, body } = await admin.call("POST", path, { ...fields(++n), ...values });
        expect([http, body]).toMatchObject([201, {}]);
        return body;
      },
    });

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

    writeSuite(resource, context);
    removeSuite(resource, context);
    listSuite(resource, context);
  });
}
