import { status } from "elysia";
import type { Actor, Context } from "../../core/context.ts";
import { once } from "../../core/idempotency/once.ts";
import { etagOf } from "./etag.ts";

/** The answer to a POST, with additional headers. */
export interface Made<T> {
  headers: Record<string, string>;
  body: T;
}

/**
 * Runs `work` once for all requests with the same `Idempotency-Key`, and gives each its answer; without the header it
 * just runs it. `work` must write only through the given context. A stored answer is returned only to users who
 * `mayStillRead` it, since they may have left a Restricted incident; otherwise it rejects like a GET.
 *
 * @param pathOf the path of the new record, for the header `Location`
 */
export async function withIdempotencyKey<C extends Context, T extends object>(
  context: C,
  { actor, request, body }: { actor: Actor; request: Request; body: unknown },
  work: (context: C) => Promise<T>,
  mayStillRead: (body: T) => Promise<void> | void,
  pathOf?: (body: T) => string,
): Promise<Made<T>> {
  const answerOf = (body: T) => ({ headers: headersOf(body, pathOf), body });
  const key = request.headers.get("idempotency-key");
  if (key === null) return answerOf(await work(context));
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
    const { headers, body } = answerOf(await work({ ...context, db }));
    return { status: 201, headers, body: JSON.stringify(body) };
  });
  const made = { headers: answer.headers, body: JSON.parse(answer.body) as T };
  if (isKept) await mayStillRead(made.body);
  return made;
}

function headersOf<T extends object>(body: T, pathOf?: (body: T) => string): Record<string, string> {
  return {
    ...(pathOf && { location: pathOf(body) }),
    ...("version" in body && { etag: etagOf({ version: Number(body.version) }) }),
  };
}

/** Answers a POST with 201. */
export function created<T>(set: { headers: object }, { headers, body }: Made<T>) {
  Object.assign(set.headers, headers);
  return status(201, body);
}
