/** Less than a test may take, so that it says what it has waited for; enough for a machine with much else to do. */
const patienceSeconds = 40;

/**
 * Asks again until the answer is there: anything but undefined, null and false.
 * @throws Error that names `what` when it is not there after `seconds`
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

/** The value of a promise that has to settle in time. */
export async function within<T>(what: string, promise: Promise<T>, seconds = patienceSeconds): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`waited ${seconds} s for ${what}`)), seconds * 1000);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
