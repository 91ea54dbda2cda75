import { expect } from "bun:test";

// Faults of Bun 1.4.5's `toMatchObject`: it holds any two dates for the same, so a test that means to look at one
// would look at nothing; and where it meets `expect.any(...)`, it writes that into the object that it looks at. Here it
// compares dates, and looks at a copy.

// A third one: `expect(promise).rejects` turns the event loop itself until the promise settles, and then misses some of what
// PostgreSQL answers until the next timer, which is a second away. A timer that is always near saves most of that second.
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

/** Lists and plain objects anew, all else as it is. */
function copied(value: unknown, date: (date: Date) => unknown = (same) => same): unknown {
  if (value instanceof Date) return date(value);
  if (Array.isArray(value)) return value.map((one) => copied(one, date));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, copied(one, date)]));
}
