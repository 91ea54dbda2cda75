import { durationText } from "../duration.ts";
import { literally } from "../markdown.ts";
import type { Message } from "../plugin/facts.ts";
import type { Listed } from "./listed.ts";

export interface Summary {
  /** Those that are spelt out, what is Active first. */
  incidents: readonly Listed[];
  /** How many there are, also beyond those. */
  active: number;
  ended: number;
}

/** The day in one message. `date` is the slot's, in the time zone of the schedule. */
export function summaryMessage(
  { incidents, active, ended }: Summary,
  { date, now, publicUrl }: { date: string; now: Date; publicUrl: string },
): Message {
  const isActive = ({ status }: Listed) => status === "Active";
  const line = (one: Listed) => `- ${lineOf(one, now)}\n  ${publicUrl}/incidents/${one.id}`;
  const section = (title: string, listed: readonly Listed[], count: number) => {
    if (count === 0) return `${title}: none.`;
    const more = count > listed.length ? [`- and ${count - listed.length} more`] : [];
    return [`${title}: ${count}`, "", ...listed.map(line), ...more].join("\n");
  };
  const ended24 = incidents.filter((one) => !isActive(one));
  return {
    subject: `Incidents on ${date}: ${active} active, ${ended} stable or closed in the last 24 hours`,
    text: [
      section("Active", incidents.filter(isActive), active),
      section("Stable or closed in the last 24 hours", ended24, ended),
    ].join("\n\n"),
  };
}

/** What one person is told of a Restricted incident, apart from the summary of the others. */
export function restrictedMessage(
  one: Listed,
  { date, now, publicUrl }: { date: string; now: Date; publicUrl: string },
): Message {
  return {
    subject: `${one.name} on ${date}`,
    text: `${lineOf(one, now)}\n\n${publicUrl}/incidents/${one.id}\n\nRestricted: only those who take part are told.`,
  };
}

function lineOf(
  { name, title, status, priority, reportedAt, commander, lastReportAt }: Listed,
  now: Date,
): string {
  const parts = [
    status === "Active" ? `priority ${literally(priority)}` : status,
    ...(status === "Active" ? [`for ${durationText(reportedAt, now)}`] : []),
    commander === null ? "nobody commands" : `commander ${literally(commander)}`,
    lastReportAt === null ? "no status report yet" : `last report ${durationText(lastReportAt, now)} ago`,
  ];
  return `${name}: ${literally(title)} (${parts.join(", ")})`;
}
