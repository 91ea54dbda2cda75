import { expect, test } from "bun:test";
import type { Transaction } from "../../drizzle/client.ts";
import { type Unwritten, writeInParts } from "./savepoints.ts";

/** All that is asked of one here: a savepoint. */
const transaction = {
  transaction: (work: (tx: Transaction) => Promise<unknown>) => work(transaction),
} as unknown as Transaction;
const locked = () => Object.assign(new Error("canceling statement due to lock timeout"), { code: "55P03" });

/** Writes so many rows, of which all are locked; without PostgreSQL's wait for each. */
async function writeLocked(count: number): Promise<{ unwritten: Unwritten<number>; attempts: number }> {
  let attempts = 0;
  const rows = Array.from({ length: count }, (_, row) => row);
  const unwritten = await writeInParts(transaction, rows, async () => {
    attempts += 1;
    throw locked();
  });
  return { unwritten, attempts };
}

test("rows that are locked are told apart, up to a hundred", async () => {
  const { unwritten, attempts } = await writeLocked(100);
  expect(unwritten.refused).toEqual([]);
  expect(unwritten.locked).toHaveLength(100);
  expect(attempts).toBeLessThan(200);
});

test("where more are locked, the whole list is given up: each row would be waited for", async () => {
  await expect(writeLocked(1000)).rejects.toThrow("lock timeout");
});
