import { errorCode, withoutQuery } from "./database_error.ts";

/** In a transaction, PostgreSQL answers this to every statement after one that failed. */
const afterAFailure = "25P02";

/**
 * Waits for statements that were sent one after the other without waiting, in a transaction. Of those that fail, the first one
 * has the reason, whichever promise is rejected first: `Promise.all` would throw what only follows from it.
 */
export async function together<T extends readonly unknown[] | []>(
  statements: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const settled = await Promise.allSettled(statements);
  const failed = settled.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
  if (failed.length > 0)
    throw failed.find((error) => errorCode(withoutQuery(error)) !== afterAFailure) ?? failed[0];
  return settled.map((one) => (one as PromiseFulfilledResult<unknown>).value) as {
    -readonly [K in keyof T]: Awaited<T[K]>;
  };
}
