import type { Clock } from "../../platform/clock.ts";

/** A clock that advances only when it is moved. */
export class TestClock implements Clock {
  constructor(private time = new Date("2026-11-20T12:00:00Z")) {}

  now(): Date {
    return new Date(this.time);
  }

  advance(seconds: number): void {
    this.time = new Date(this.time.getTime() + seconds * 1000);
  }
}
