import { after } from "../../../platform/clock.ts";
import { durationText, minuteText } from "../../../platform/duration.ts";
import { literally } from "../../../platform/markdown.ts";
import { isLate } from "../../outbox/late.ts";
import type { Message } from "../../plugin/facts.ts";
import type { Listed } from "./listed.ts";
import type { Window } from "./window.ts";

const daySeconds = 24 * 3600;

export interface Summary {
  /** Those that are shown, Active ones first. */
  incidents: readonly Listed[];
  /** How many there are, including those not shown. */
  active: number;
  ended: number;
}

export interface Words {
  /** The slot's date, in the schedule's time zone. */
  date: string;
  window: Window;
  timezone: string;
  publicUrl: string;
}

/** The summary of a day in one message. */
export function summaryMessage({ incidents, active, ended }: Summary, words: Words): Message {
  const { date, publicUrl } = words;
  const now = words.window.until;
  const when = windowText(words);
  const isActive = ({ status }: Listed) => status === "Active";
  const line = (one: Listed) => `- ${lineOf(one, now)}\n  ${publicUrl}/incidents/${one.id}`;
  const section = (title: string, listed: readonly Listed[], count: number) => {
    if (count === 0) return `${title}: none.`;
    const more = count > listed.length ? [`- and ${count - listed.length} more`] : [];
    return [`${title}: ${count}`, "", ...listed.map(line), ...more].join("\n");
  };
  const over = incidents.filter((one) => !isActive(one));
  return {
    subject: `Incidents on ${date}: ${active} active, ${ended} stable or closed ${when}`,
    text: [
      section("Active", incidents.filter(isActive), active),
      section(`Stable or closed ${when}`, over, ended),
    ].join("\n\n"),
  };
}

/** A person's message about a Restricted incident, separate from the summary of the others. */
export function restrictedMessage(one: Listed, { date, window, publicUrl }: Words): Message {
  return {
    subject: `${one.name} on ${date}`,
    text: `${lineOf(one, window.until)}\n\n${publicUrl}/incidents/${one.id}\n\nRestricted: only its participants get this message.`,
  };
}

/** Usually a day, but not when the clocks change, after a missed summary, or if it is sent late. */
function windowText({ window: { since, until }, timezone }: Words): string {
  const isDay = until >= after(since, daySeconds) && !isLate(after(since, daySeconds), until);
  return isDay ? "in the last 24 hours" : `since ${minuteText(since, timezone)}`;
}

function lineOf(
  { name, title, status, priority, reportedAt, commander, lastReportAt }: Listed,
  now: Date,
): string {
  const parts = [
    status === "Active" ? `priority ${literally(priority)}` : status,
    ...(status === "Active" ? [`for ${durationText(reportedAt, now)}`] : []),
    commander === null ? "no commander" : `commander ${literally(commander)}`,
    lastReportAt === null ? "no status report yet" : `last report ${durationText(lastReportAt, now)} ago`,
  ];
  return `${name}: ${literally(title)} (${parts.join(", ")})`;
}
