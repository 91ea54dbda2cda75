import { and, eq, lte, or, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { idempotencyKey } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { InProgress, InvalidInput, KeyReused } from "../../platform/errors.ts";
import { sha256, toHex } from "../../platform/secret.ts";
import type { Context } from "../context.ts";

/** A write and its identifying values. */
export interface KeyedRequest {
  /** Canonical user name. */
  actor: string;
  method: string;
  path: string;
  /** The header Idempotency-Key. */
  key: string;
  /** Everything else that determines what the request does, as text. */
  content: string;
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  /** As text, so that a repeated answer is identical. */
  body: string;
}

const keptSeconds = 24 * 3600;
/** Longer than any work takes. After that, its server counts as dead and can no longer finish. */
const leaseSeconds = 60;
const retrySeconds = 1;

/**
 * Does `work` once for all requests with this actor, method, path and key within 24 h, and gives each the same answer.
 *
 * The first request claims the key for a while (Running). `work` and storing its answer (Done) are one transaction, so
 * a crash cannot leave one without the other. When the lease of a dead server ends, the key can be claimed again. Concurrent
 * requests are asked to retry, so that they hold no connection while they wait. Failed work has done nothing: it
 * releases the key, and a retry starts again.
 *
 * @throws InvalidInput when the key is invalid
 * @throws InProgress while another request is at work
 * @throws KeyReused when the key was used for other content
 */
export async function once(
  context: Context,
  request: KeyedRequest,
  work: (context: Context & { db: Transaction }) => Promise<Answer>,
): Promise<Answer> {
  assertKey(request.key);
  const claimed = await claim(context, request);
  if ("answer" in claimed) return claimed.answer;
  const { db } = context;
  const ours = and(isKey(request), eq(idempotencyKey.leaseUntil, claimed.leaseUntil));
  try {
    return await db.transaction(async (tx) => {
      const answer = await work({ ...context, db: tx });
      const { status: responseStatus, headers: responseHeaders, body: responseBody } = answer;
      const [done] = await tx
        .update(idempotencyKey)
        .set({ state: "Done", leaseUntil: null, responseStatus, responseHeaders, responseBody })
        .where(ours)
        .returning({ key: idempotencyKey.key });
      // It took longer than its lease, and another request has started again, which counts.
      if (!done) throw new InProgress(retrySeconds);
      return answer;
    });
  } catch (error) {
    // If that fails as well, the lease expires.
    await db
      .delete(idempotencyKey)
      .where(ours)
      .catch((err: unknown) => context.log.warn({ err }, "an idempotency key stays claimed"));
    throw error;
  }
}

/** @throws InvalidInput */
export function assertKey(key: string): void {
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw new InvalidInput("Idempotency-Key", "The key must be 1 to 255 visible ASCII characters");
}

/** Claims the key until `leaseUntil`, or returns the stored answer. */
async function claim(
  { db, clock }: Context,
  request: KeyedRequest,
): Promise<{ leaseUntil: Date } | { answer: Answer }> {
  const { actor, method, path, key, content } = request;
  const at = clock.now();
  // It also identifies the claim: a later one only begins when the previous one has ended.
  const leaseUntil = after(at, leaseSeconds);
  const requestHash = sha256(content);
  const fresh = { requestHash, state: "Running" as const, leaseUntil, createdAt: at };
  const values = { ...fresh, expiresAt: after(at, keptSeconds) };
  await deleteSomeExpired(db, at);
  const [claimed] = await db
    .insert(idempotencyKey)
    .values({ actor, method, path, key, ...values })
    .onConflictDoUpdate({
      target: [idempotencyKey.actor, idempotencyKey.key, idempotencyKey.method, idempotencyKey.path],
      set: { ...values, responseStatus: null, responseHeaders: null, responseBody: null },
      setWhere: or(
        lte(idempotencyKey.expiresAt, at),
        and(lte(idempotencyKey.leaseUntil, at), eq(idempotencyKey.requestHash, requestHash)),
      ),
    })
    .returning({ key: idempotencyKey.key });
  if (claimed) return { leaseUntil };
  const [first] = await db.select().from(idempotencyKey).where(isKey(request));
  if (first && toHex(first.requestHash) !== toHex(requestHash)) throw new KeyReused();
  if (!first?.responseStatus) throw new InProgress(retrySeconds);
  const { responseStatus: status, responseHeaders: headers, responseBody: body } = first;
  return { answer: { status, headers: headers ?? {}, body: body ?? "" } };
}

function isKey({ actor, method, path, key }: KeyedRequest) {
  return and(
    eq(idempotencyKey.actor, actor),
    eq(idempotencyKey.key, key),
    eq(idempotencyKey.method, method),
    eq(idempotencyKey.path, path),
  );
}

/** A few with each claim: the table stays as small as a day's writes, and no claim waits for a large cleanup. */
async function deleteSomeExpired(db: Context["db"], at: Date): Promise<void> {
  const place = sql`ctid`;
  const some = db
    .select({ place })
    .from(idempotencyKey)
    .where(lte(idempotencyKey.expiresAt, at))
    .orderBy(idempotencyKey.expiresAt)
    .limit(10)
    .for("update", { skipLocked: true });
  // An array, so that PostgreSQL evaluates it once. If it expects few keys, it runs a subquery for each key.
  await db.delete(idempotencyKey).where(sql`${place} = any (array(${some}))`);
}
