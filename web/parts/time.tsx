import { useContext } from "preact/hooks";
import { Reader } from "./reader.ts";

const units = [
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
] as const;

/** How long ago something was, in its largest unit, with the exact time on hover. */
export function Ago({ at }: { at: Date }) {
  const { now } = useContext(Reader);
  const seconds = Math.max(0, (now.getTime() - at.getTime()) / 1000);
  const [unit, length] = units.find(([, length]) => seconds >= length) ?? ["", 1];
  return <Moment at={at}>{unit === "" ? "now" : `${Math.floor(seconds / length)} ${unit}`}</Moment>;
}

/** The time of day, with the date unless it is today. */
export function Clock({ at }: { at: Date }) {
  const { now, timeZone } = useContext(Reader);
  const day = (date: Date) => date.toLocaleDateString("sv", { timeZone });
  const time = at.toLocaleTimeString("sv", { timeZone, hour: "2-digit", minute: "2-digit" });
  return <Moment at={at}>{day(at) === day(now) ? time : `${day(at).slice(5)} ${time}`}</Moment>;
}

function Moment({ at, children }: { at: Date; children: string }) {
  const { timeZone } = useContext(Reader);
  return (
    <time datetime={at.toISOString()} title={`${at.toLocaleString("sv", { timeZone })} ${timeZone}`}>
      {children}
    </time>
  );
}
