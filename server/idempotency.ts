import type { Actor, Context } from "../core/context.ts";
import { once } from "../core/idempotency/once.ts";

/** What a POST answers, with headers beside those of every answer. */
export interface Made<T> {
  headers: Record<string, string>;
  body: T;
}

/**
 * Does `work` once for all requests with the same `Idempotency-Key`, and gives each its answer; without the header it
 * just does it. `work` writes through the context that it is handed and nothing else.
 */
export async function oncePerKey<T>(
  context: Context,
  { actor, request, body }: { actor: Actor; request: Request; body: unknown },
  work: (context: Context) => Promise<Made<T>>,
): Promise<Made<T>> {
  const key = request.headers.get("idempotency-key");
  if (key === null) return work(context);
  const keyed = {
    ...{ actor: actor.user, method: request.method, key },
    path: new URL(request.url).pathname.replace(/\/$/, ""),
    content: JSON.stringify(body),
  };
  const answer = await once(context, keyed, async (inner) => {
    const { headers, body } = await work(inner);
    return { status: 201, headers, body: JSON.stringify(body) };
  });
  return { headers: answer.headers, body: JSON.parse(answer.body) as T };
}
