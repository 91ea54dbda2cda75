/** This process's time of day is wrong by so many seconds from now on. What goes by the database's time shall not care. */
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
