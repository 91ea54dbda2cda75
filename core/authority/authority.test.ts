import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { authorityKey } from "../../drizzle/schema/index.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import type { Actor } from "../context.ts";
import { rotateAuthority, signingAuthority, trustedKeys } from "./authority.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const admin = { user: "root@example.com", admin: true, groups: ["admin"] } as unknown as Actor;
const times = <T>(count: number, work: () => Promise<T>) => Promise.all(Array.from({ length: count }, work));

test("concurrent first uses of an authority create one key", async () => {
  const signing = await times(10, () => signingAuthority(server, "ssh", "first"));
  expect(new Set(signing.map(({ id }) => id)).size).toBe(1);
  expect(await server.db.$count(authorityKey, sql`name = 'first'`)).toBe(1);
});

test("one of several concurrent rotations succeeds", async () => {
  await signingAuthority(server, "ssh", "busy");
  const outcomes = await times(5, () =>
    rotateAuthority(server, admin, { kind: "ssh", name: "busy", revoke: false }).then(
      () => "rotated",
      (error: { code: string }) => error.code,
    ),
  );
  expect(outcomes.sort()).toEqual(["conflict", "conflict", "conflict", "conflict", "rotated"]);
  expect(await trustedKeys(server, "ssh", "busy")).toHaveLength(2);
});

test("a first key created by rotation signs immediately", async () => {
  const key = await rotateAuthority(server, admin, { kind: "ssh", name: "planned", revoke: false });
  expect((await signingAuthority(server, "ssh", "planned")).id).toBe(key.id);
});

test.each(["", "Upper", "a b", "a/b", "..", "-a", "a".repeat(61)])("the name %p is refused", async (name) => {
  const rotated = rotateAuthority(server, admin, { kind: "ssh", name, revoke: false });
  await expect(rotated).rejects.toMatchObject({ code: "invalid_input", field: "name" });
});

test("keys need SVC_KEY_SECRET, and a different secret cannot decrypt them", async () => {
  const { db, config } = server;
  const unset = { ...config, keySecret: "" };
  expect(signingAuthority({ db, config: unset }, "ssh", "unsealed")).rejects.toThrow("SVC_KEY_SECRET");
  expect(await server.db.$count(authorityKey, sql`name = 'unsealed'`)).toBe(0);
  await signingAuthority(server, "ssh", "sealed");
  const keySecret = "another-secret-of-more-than-thirty-two-characters";
  expect(signingAuthority({ db, config: { ...config, keySecret } }, "ssh", "sealed")).rejects.toThrow(
    "cannot decrypt the key of authority ssh/sealed",
  );
});

test("the private key of one authority cannot be decrypted in another's row", async () => {
  await signingAuthority(server, "ssh", "one");
  await signingAuthority(server, "ssh", "two");
  await server.db.execute(sql`update authority_key set private_key = (
    select private_key from authority_key where name = 'two') where name = 'one'`);
  expect(signingAuthority(server, "ssh", "one")).rejects.toThrow("SVC_KEY_SECRET");
});
