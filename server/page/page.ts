import { Unavailable } from "../../platform/errors.ts";
import { withTimeLimit } from "../../platform/time_limit.ts";

/** Without a script, the reader looks at an empty tab meanwhile. */
const patienceMilliseconds = 4000;

/**
 * What a page shows, or an error that says that it is slow. The work then continues: a transaction in it may still commit.
 *
 * @throws Unavailable after 4 s
 */
export async function inTime<T>(work: Promise<T>): Promise<T> {
  const done = await withTimeLimit(
    patienceMilliseconds,
    work.then((value) => ({ value })),
  );
  if (!done) throw new Unavailable("The database, or the sign-in provider, is slow at the moment");
  return done.value;
}

/** Headers of every page: not cached, leaked to other sites, framed, or executed. */
export const pageHeaders = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "content-security-policy":
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
} as const;

/** Redirects the browser to a path of ours or to the issuer. */
export function redirect(location: string, headers: Record<string, string> = {}): Response {
  const { "content-type": _, ...rest } = pageHeaders;
  return new Response(null, { status: 303, headers: { ...rest, location, ...headers } });
}
