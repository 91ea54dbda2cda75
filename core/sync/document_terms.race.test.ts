import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { documentTerm, term } from "../../drizzle/schema/index.ts";
import { inTheWay } from "../../tests/support/database/blocked.ts";
import { at, type Outbox, startOutbox } from "../../tests/support/domain/delivery.ts";
import { keepFindings } from "./document_terms.ts";

let outbox: Outbox;
beforeAll(async () => {
  outbox = await startOutbox();
});
afterAll(() => outbox[Symbol.asyncDispose]());

test("a term that is being deleted is skipped, and the others are linked", async () => {
  const { db, ids } = outbox;
  const { documentId } = ids;
  const stamps = { createdAt: at, updatedAt: at };
  const made = await db
    .insert(term)
    .values([
      { text: "outage", ...stamps },
      { text: "quorum", ...stamps },
    ])
    .returning({ id: term.id });
  const [going, staying] = made.map(({ id }) => id).sort((a, b) => a - b) as [number, number];
  const [kept] = await inTheWay(
    db,
    (tx) => tx.delete(term).where(eq(term.id, going)),
    () =>
      db.transaction((tx) =>
        keepFindings(tx, [{ documentId, hash: null, termIds: [going, staying] }], "vocabulary"),
      ),
  );
  expect(kept).toMatchObject({ status: "fulfilled" });
  const rows = await db.select().from(documentTerm).where(eq(documentTerm.documentId, documentId));
  expect(rows).toEqual([{ documentId, termId: staying, source: "Found" }]);
});
