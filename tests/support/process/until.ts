/** Less than a test's timeout, so that the error names the condition; enough for a busy machine. */
const patienceSeconds = 40;

/**
 * Repeats the call until it returns anything but undefined, null and false.
 * @throws Error that names `what` after `seconds`
 */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  seconds = patienceSeconds,
): Promise<Exclude<T, undefined | null | false>> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false)
      return answer as Exclude<T, undefined | null | false>;
    if (performance.now() > deadline) throw new Error(`waited ${seconds} s for ${what}`);
    await Bun.sleep(15);
  }
}

/** The value of a promise, which must settle in time. */
export async function within<T>(what: string, promise: Promise<T>, seconds = patienceSeconds): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`waited ${seconds} s for ${what}`)), seconds * 1000);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
