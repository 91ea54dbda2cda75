import { InvalidInput } from "../platform/errors.ts";
import { isStorable, parseInstant } from "../platform/instant.ts";
import { localText } from "../platform/time_zone.ts";

/** The fields of a form. */
export class Values {
  constructor(private readonly fields: ReadonlyMap<string, string>) {}

  /** Empty when it is missing. Browsers send line breaks as CRLF. */
  text(name: string): string {
    return (this.fields.get(name) ?? "").replaceAll("\r\n", "\n");
  }

  /** Undefined when it is empty. */
  given(name: string): string | undefined {
    return this.text(name).trim() || undefined;
  }

  /** @throws InvalidInput */
  id(name: string): number {
    const text = this.text(name);
    if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidInput(name, "Choose one of the list");
    return Number(text);
  }

  isTicked(name: string): boolean {
    return this.fields.has(name);
  }

  /** The ids of the ticked boxes `<prefix>-<id>`. */
  ticked(prefix: string): number[] {
    return [...this.fields.keys()].flatMap((name) => {
      const [, id] = name.match(/^(.+)-([1-9]\d{0,14})$/)?.slice(1) ?? [];
      return id !== undefined && name === `${prefix}-${id}` ? [Number(id)] : [];
    });
  }

  /**
   * A time of the reader's zone, `2026-11-27 14:05`, or with an offset of its own. A field that still says `before`, which it
   * shows without seconds, keeps them.
   * @throws InvalidInput
   */
  time(name: string, timeZone: string, before: Date | null = null): Date | undefined {
    const text = this.given(name);
    if (text === undefined) return undefined;
    if (before && text === timeText(before, timeZone)) return before;
    const [, date, time] = text.match(/^(\d{4}-\d{2}-\d{2})[ T](\d{1,2}:\d{2})$/) ?? [];
    if (date === undefined || time === undefined) return parseInstant(name, text);
    const [earlier, later] = momentsOf(name, `${date}T${time.padStart(5, "0")}`, timeZone);
    if (earlier.epochMilliseconds === later.epochMilliseconds) return new Date(earlier.epochMilliseconds);
    // It is skipped or comes twice: nobody but the user knows what they mean.
    const [one, other] = [earlier, later].map((moment) => moment.toString({ timeZoneName: "never" }));
    throw new InvalidInput(name, `The clocks of ${timeZone} change then: write ${one} or ${other}`);
  }

  /** Like `time` for a filter. A day, such as `2026-11-27`, is included. @throws InvalidInput */
  bound(name: "since" | "until", timeZone: string): Date | undefined {
    const text = this.given(name);
    if (text === undefined || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return this.time(name, timeZone);
    const days = name === "until" ? 1 : 0;
    const moment = momentOf(name, () =>
      Temporal.PlainDate.from(text).add({ days }).toZonedDateTime(timeZone),
    );
    return new Date(moment.epochMilliseconds);
  }
}

/** A time for a field that `Values.time` reads. */
export function timeText(at: Date | null, timeZone: string): string {
  return at === null ? "" : localText(at, timeZone).slice(0, 16);
}

/** The first and the last moment that a time of day may mean. @throws InvalidInput */
function momentsOf(name: string, local: string, timeZone: string) {
  const of = (disambiguation: "earlier" | "later") =>
    momentOf(name, () => Temporal.PlainDateTime.from(local).toZonedDateTime(timeZone, { disambiguation }));
  return [of("earlier"), of("later")] as const;
}

/** @throws InvalidInput */
function momentOf(name: string, read: () => Temporal.ZonedDateTime): Temporal.ZonedDateTime {
  try {
    const moment = read();
    // In the west, the last hours of the year 9999 are in the next one.
    if (!isStorable(new Date(moment.epochMilliseconds))) throw new RangeError("after the last year");
    return moment;
  } catch {
    throw new InvalidInput(name, "There is no such time: write it like 2026-11-27 14:05");
  }
}
