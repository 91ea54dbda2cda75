import { Unavailable } from "../platform/errors.ts";
import { withTimeLimit } from "../platform/time_limit.ts";

/** Shorter than a client's timeout, so that the client gets the error and retries. */
const patienceMilliseconds = 5000;

/**
 * Awaits `work` in the database with a time limit: a frozen database, or one behind a cut cable, does not answer for
 * minutes. The work itself continues.
 *
 * @throws Unavailable after five seconds
 */
export async function databaseAnswer<T>(work: Promise<T>): Promise<T> {
  const answer = work.then((value) => ({ value }));
  const inTime = await withTimeLimit(patienceMilliseconds, answer);
  if (!inTime) throw new Unavailable("The database does not answer: try again in a moment");
  return inTime.value;
}
