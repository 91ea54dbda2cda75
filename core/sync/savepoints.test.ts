import { expect, test } from "bun:test";
import type { Transaction } from "../../drizzle/client.ts";
import { type Unwritten, writeInParts } from "./savepoints.ts";

/** The only thing needed of it here is a savepoint. */
const transaction = {
  transaction: (work: (tx: Transaction) => Promise<unknown>) => work(transaction),
} as unknown as Transaction;
const locked = () => Object.assign(new Error("canceling statement due to lock timeout"), { code: "55P03" });

/** Writes this many rows, all of them locked, without PostgreSQL's wait for each. */
async function writeLocked(count: number): Promise<{ unwritten: Unwritten<number>; attempts: number }> {
  let attempts = 0;
  const rows = Array.from({ length: count }, (_, row) => row);
  const unwritten = await writeInParts(transaction, rows, async () => {
    attempts += 1;
    throw locked();
  });
  return { unwritten, attempts };
}

test("up to a hundred locked rows are skipped and reported", async () => {
  const { unwritten, attempts } = await writeLocked(100);
  expect(unwritten.refused).toEqual([]);
  expect(unwritten.locked).toHaveLength(100);
  expect(attempts).toBeLessThan(200);
});

test("with more locked rows the whole list fails, because each would be waited for", async () => {
  await expect(writeLocked(1000)).rejects.toThrow("lock timeout");
});
