import { beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import fc from "fast-check";
import { mayReadIncident } from "../../core/incident/visibility/visibility.ts";
import { parseUrl, urlLength } from "../../platform/text.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import type { Transaction } from "../client.ts";
import { document, incident } from "./index.ts";

const at = new Date("2026-12-01T12:00:00.000Z");

const client = useDatabase(2);
beforeAll(async () => {
  await insertIncident(client.db, at);
  await client.db.execute(sql`vacuum analyze`);
});

/** The plan for a large table, for which a sequential scan would be too slow. */
function planOf(query: ReturnType<typeof sql>): Promise<string> {
  return client.db.transaction(async (tx: Transaction) => {
    await tx.execute(sql`set local enable_seqscan = off`);
    return JSON.stringify(await tx.execute(sql`explain (format json) ${query}`));
  });
}

test("a document is found by its link, even by the longest possible one", async () => {
  const letters = fc
    .sample(fc.integer({ min: 0x4e00, max: 0x9ffe }), urlLength - 20)
    .map((code) => String.fromCodePoint(code));
  const weblink = parseUrl("weblink", `https://example.com/${letters.join("")}`);
  expect(weblink.length).toBeGreaterThan(9 * (urlLength - 20));
  const stamps = { createdAt: at, updatedAt: at };
  await client.db.insert(document).values({ name: "Long", resourceType: "reference", weblink, ...stamps });
  const byLink = sql`select name from document where weblink = ${weblink}`;
  expect([...(await client.db.execute(byLink))]).toEqual([{ name: "Long" }]);
  expect(await planOf(byLink)).toContain("document_weblink_idx");
});

test("access to Restricted incidents is answered from an index alone", async () => {
  const reader = { user: "alice@example.com", admin: false };
  const plan = await planOf(sql`select ${incident.id} from ${incident} where ${mayReadIncident(reader)}`);
  expect(plan).toMatch(/"Index Only Scan"[^{}]*"participant_individual_active_idx"/);
});
