import type { EntryText } from "../../../drizzle/schema/index.ts";
import { literally } from "../../../platform/markdown.ts";
import type { Message } from "../../plugin/facts.ts";
import type { Incident } from "../incident/incident.ts";
import { type EntryKind, entryNames } from "../timeline/entry.ts";

/** The incident that a message is about. */
export interface About {
  /** `INC-1` */
  name: string;
  title: string;
  weblink: string;
}

/** These messages contain people's text literally. */
export function saidMessage(
  { name }: Pick<About, "name">,
  { author, text, isDirect }: { author: string; text: string; isDirect: boolean },
): Message {
  const subject = `${name}: ${isDirect ? "direct message" : "message"} from ${author}`;
  return { subject, text: literally(text) };
}

export function reportMessage(
  about: About,
  { author, ...texts }: { author: string; conditions: string; actions: string; needs: string },
): Message {
  return messageOf(about, `${about.name}: status report from ${author}`, linesOf(texts));
}

function linesOf(text: EntryText): string[] {
  if ("description" in text) return [literally(text.description)];
  const parts = [
    ["Conditions", text.conditions],
    ["Actions", text.actions],
    ["Needs", text.needs],
  ] as const;
  return parts
    .filter(([, part]) => part.trim() !== "")
    .map(([name, part]) => `**${name}:** ${literally(part)}`);
}

export function noteMessage(about: About, { author, text }: { author: string; text: string }): Message {
  return messageOf(about, `${about.name}: note from ${author}`, [literally(text)]);
}

/** The message that announces an entry with this text. */
export function entryMessage(
  about: About,
  { kind, author, text }: { kind: EntryKind; author: string; text: EntryText },
): Message {
  if (kind === "message.sent" && "description" in text)
    return saidMessage(about, { author, text: text.description, isDirect: false });
  return messageOf(about, `${about.name}: ${entryNames[kind]} from ${author}`, linesOf(text));
}

export interface Correction {
  kind: EntryKind;
  author: string;
  /** Who corrected it. */
  who: string;
  /** When it was said, as text. */
  time: string;
  action: "corrected" | "withdrawn" | "redacted";
  text: EntryText;
}

const did = { corrected: "corrected", withdrawn: "withdrew", redacted: "redacted" } as const;

/** Says what has changed in a conversation where a message cannot be edited. A text that is gone is not repeated. */
export function correctionMessage(about: About, correction: Correction): Message {
  const { kind, author, who, time, action, text } = correction;
  const whose = who === author ? "their" : `${author}’s`;
  const subject = `${about.name}: ${who} ${did[action]} ${whose} ${entryNames[kind]} of ${time}`;
  return messageOf(about, subject, action === "corrected" ? linesOf(text) : []);
}

type Changed = Pick<Incident, "status" | "visibility" | "incidentPriority" | "resolution">;

/** Announces a change of at least one of status, priority and visibility. */
export function changeMessage(
  about: About,
  { before, after, who }: { before: Changed; after: Changed; who: string },
): Message {
  const by = literally(who);
  const shorts: string[] = [];
  const lines: string[] = [];
  if (before.status !== after.status) {
    shorts.push(after.status);
    lines.push(`${by} changed the status from ${before.status} to ${after.status}.`);
    if (after.status === "Closed" && after.resolution?.trim())
      lines.push(`**Resolution:** ${literally(after.resolution)}`);
  }
  if (before.incidentPriority.name !== after.incidentPriority.name) {
    const [from, to] = [before.incidentPriority.name, after.incidentPriority.name];
    shorts.push(`priority ${to}`);
    lines.push(`${by} changed the priority from ${literally(from)} to ${literally(to)}.`);
  }
  if (before.visibility !== after.visibility) {
    shorts.push(after.visibility);
    const readers = after.visibility === "Open" ? "everybody" : "only its participants and admins";
    lines.push(`${by} made the incident ${after.visibility}: ${readers} can read it.`);
  }
  return messageOf(about, `${about.name}: ${shorts.join(", ")}`, lines);
}

export function reopenedMessage(about: About, who: string): Message {
  return messageOf(about, `${about.name}: Active`, [`${literally(who)} reopened the incident.`]);
}

export function commandMessage(
  about: About,
  { name, from }: { name: string; from: string | undefined },
): Message {
  const line = from
    ? `${literally(name)} took over as commander from ${literally(from)}.`
    : `${literally(name)} is the commander.`;
  return messageOf(about, `${about.name}: ${name} is the commander`, [line]);
}

function messageOf({ name, title, weblink }: About, subject: string, lines: readonly string[]): Message {
  return { subject, text: [`**${name}: ${literally(title)}**`, ...lines, weblink].join("\n\n") };
}
