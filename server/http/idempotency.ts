import { status } from "elysia";
import type { Actor, Context } from "../../core/context.ts";
import { once } from "../../core/idempotency/once.ts";

/** The answer to a POST, with additional headers. */
export interface Made<T> {
  headers: Record<string, string>;
  body: T;
}

/**
 * Runs `work` once for all requests with the same `Idempotency-Key`, and gives each its answer; without the header it
 * just runs it. `work` must write only through the given context. A stored answer is returned only to users who
 * `mayStillRead` it, since they may have left a Restricted incident; otherwise it rejects like a GET.
 */
export async function withIdempotencyKey<C extends Context, T>(
  context: C,
  { actor, request, body }: { actor: Actor; request: Request; body: unknown },
  work: (context: C) => Promise<Made<T>>,
  mayStillRead: (body: T) => Promise<void> | void,
): Promise<Made<T>> {
  const key = request.headers.get("idempotency-key");
  if (key === null) return work(context);
  const keyed = {
    actor: actor.user,
    method: request.method,
    key,
    path: new URL(request.url).pathname.replace(/\/$/, ""),
    content: JSON.stringify(body),
  };
  let isKept = true;
  const answer = await once(context, keyed, async ({ db }) => {
    isKept = false;
    const { headers, body } = await work({ ...context, db });
    return { status: 201, headers, body: JSON.stringify(body) };
  });
  const made = { headers: answer.headers, body: JSON.parse(answer.body) as T };
  if (isKept) await mayStillRead(made.body);
  return made;
}

/** Answers a POST with 201. */
export function created<T>(set: { headers: object }, { headers, body }: Made<T>) {
  Object.assign(set.headers, headers);
  return status(201, body);
}
