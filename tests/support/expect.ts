import { expect } from "bun:test";

// Works around two faults of `toMatchObject` in Bun 1.4.5: it considers any two dates equal, and it writes
// `expect.any(...)` into the object that it checks. Here, it compares dates and checks a copy.

// A third fault: `expect(promise).rejects` runs the event loop itself until the promise settles, and then misses some
// answers of PostgreSQL until the next timer, up to a second later. A frequent timer avoids most of that delay.
setInterval(() => {}, 5).unref();

type Matcher = (this: unknown, expected: unknown) => unknown;
const original = (Object.getPrototypeOf(expect(undefined)) as { toMatchObject: Matcher }).toMatchObject;

expect.extend({
  toBeInstant(received: unknown, expected: unknown) {
    const pass =
      received instanceof Date && expected instanceof Date && received.getTime() === expected.getTime();
    return { pass, message: () => `expected ${expected}, received ${received}` };
  },
  toMatchObject(received: unknown, expected: unknown) {
    try {
      original.call(expect(copied(received)), copied(expected, instant));
      return { pass: true, message: () => "it matches" };
    } catch (error) {
      return { pass: false, message: () => (error as Error).message };
    }
  },
});

const { toBeInstant } = expect as unknown as { toBeInstant(expected: Date): unknown };
const instant = (date: Date) => toBeInstant(date);

/** Copies lists and plain objects, and keeps everything else. */
function copied(value: unknown, date: (date: Date) => unknown = (same) => same): unknown {
  if (value instanceof Date) return date(value);
  if (Array.isArray(value)) return value.map((one) => copied(one, date));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, copied(one, date)]));
}
