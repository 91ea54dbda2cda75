import { Unavailable } from "../platform/errors.ts";

/** Less than a client waits for an answer, so that it hears of it and tries again. */
const patienceMilliseconds = 5000;

/**
 * The outcome of `work` in the database, as long as that answers: one that is frozen, or behind a cut cable, says nothing
 * for minutes. The work itself goes on.
 *
 * @throws Unavailable after five seconds
 */
export async function databaseAnswer<T>(work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new Unavailable("The database does not answer: try again in a moment")),
    patienceMilliseconds,
  );
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
