import { useContext } from "preact/hooks";
import { localText } from "../../platform/time_zone.ts";
import { Reader } from "./reader.ts";

const units = [
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
] as const;

/** How long ago something was, in its largest unit, with the exact time on hover. `suffix` is for a sentence. */
export function Ago({ at, suffix = "" }: { at: Date; suffix?: "" | " ago" }) {
  const { now } = useContext(Reader);
  const seconds = Math.max(0, (now.getTime() - at.getTime()) / 1000);
  const [unit, length] = units.find(([, length]) => seconds >= length) ?? ["", 1];
  return (
    <Moment at={at}>
      {unit === ""
        ? suffix === ""
          ? "now"
          : "just now"
        : `${Math.floor(seconds / length)} ${unit}${suffix}`}
    </Moment>
  );
}

/** The time of day, with the date unless it is today. */
export function Clock({ at }: { at: Date }) {
  const { now, timeZone } = useContext(Reader);
  const text = localText(at, timeZone);
  const isToday = text.slice(0, 10) === localText(now, timeZone).slice(0, 10);
  return <Moment at={at}>{text.slice(isToday ? 11 : 5, 16)}</Moment>;
}

function Moment({ at, children }: { at: Date; children: string }) {
  const { timeZone } = useContext(Reader);
  return (
    <time datetime={at.toISOString()} title={`${localText(at, timeZone)} ${timeZone}`}>
      {children}
    </time>
  );
}
