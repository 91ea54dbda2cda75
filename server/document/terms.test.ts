import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { document } from "../../drizzle/schema/index.ts";
import { personOf } from "../../tests/support/http/people.ts";
import { startTestServer } from "../../tests/support/http/server.ts";

test("a text is searched again only after a user removes one of its terms", async () => {
  await using server = await startTestServer();
  const person = await personOf(server, "carol@example.com");
  const idOf = async (text: string): Promise<number> =>
    (await person.call("POST", "/terms/", { text, discoverable: true })).body.id;
  const [leak, kafka] = [await idOf("leak"), await idOf("kafka")];
  const fields = { name: "Runbook", description: "", resource_type: "reference", weblink: null };
  const { body: made } = await person.call("POST", "/documents/", { ...fields, term_ids: [leak] });
  const hash = new Uint8Array(32);
  await server.db.update(document).set({ termContentHash: hash });
  const isReadAfter = async (version: number, change: object) => {
    const { http } = await person.call("PUT", `/documents/${made.id}`, { ...fields, ...change, version });
    expect(http).toBe(200);
    const [row] = await server.db.select().from(document).where(eq(document.id, made.id));
    return row?.termContentHash !== null;
  };
  expect(await isReadAfter(1, {})).toBe(true);
  expect(await isReadAfter(2, { term_ids: [leak, kafka] })).toBe(true);
  expect(await isReadAfter(3, { term_ids: [kafka] })).toBe(false);
});
