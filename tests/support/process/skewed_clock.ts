/** Shifts this process's clock by this many seconds. Code that uses the database's time must not be affected. */
export function skewClock(seconds: number): void {
  const RealDate = Date;
  const skew = seconds * 1000;
  globalThis.Date = class extends RealDate {
    constructor(...args: [] | [number]) {
      if (args.length === 0) super(RealDate.now() + skew);
      else super(...args);
    }
    static override now(): number {
      return RealDate.now() + skew;
    }
  } as DateConstructor;
}
