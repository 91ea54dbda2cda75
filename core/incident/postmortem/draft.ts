import { durationText } from "../../../platform/duration.ts";
import { asTyped, literally } from "../../../platform/markdown.ts";
import { shortened } from "../../../platform/text.ts";
import type { Affected } from "../affected/affected.ts";
import type { IncidentDetail } from "../incident/get.ts";
import type { Participant } from "../participant/participant.ts";
import type { Task } from "../task/task.ts";

// The text of a post-mortem. A line of its timeline links to its entry, and a line of its tasks to its task: that is how
// drafting again knows what the text has already, together with what was drafted before (`Drafted`). Everything between these
// lines belongs to those who write it.

/** What happened, as a line of the timeline. */
export interface Happening {
  eventId: number;
  at: Date;
  /** A name. */
  who: string;
  text: string;
  /** The text is what they said. */
  isSaid: boolean;
}

export interface Facts {
  incident: IncidentDetail;
  /** In order of time, with the id as tie-break. */
  happenings: readonly Happening[];
  /** Also those who have left. */
  people: readonly Participant[];
  tasks: readonly Task[];
  /** Whether the incident has more than these. */
  more: { happenings: boolean; tasks: boolean; people: boolean };
  affected: Affected;
  publicUrl: string;
}

/** What was drafted into a text. Its event on the timeline has it, so that what somebody then deletes stays deleted. */
export interface Drafted {
  /** The ids of the entries that were added. */
  entries: number[];
  /** The newest task that was added; 0 without one. */
  task: number;
  /** No later than these were read. */
  at: Date;
  /** The text had nothing else: what was drafted before is gone. */
  isWhole: boolean;
}

const newestOf = (ids: readonly number[]) => ids.reduce((a, b) => Math.max(a, b), 0);

export function draftedOf(
  { happenings, tasks }: Pick<Facts, "happenings" | "tasks">,
  more: Pick<Drafted, "at" | "isWhole">,
): Drafted {
  return {
    entries: happenings.map(({ eventId }) => eventId),
    task: newestOf(tasks.map(({ id }) => id)),
    ...more,
  };
}

/** A section, and the question that its writer answers. The order is that of the draft. */
const sections = {
  Summary: "What happened, in three sentences that somebody who was not there understands.",
  Impact: "Whom did it hurt, how, and for how long?",
  Timeline: undefined,
  "What went well": "What helped? What should stay as it is?",
  "What went badly": "What caused it, and what made it longer or worse? Name causes, not people.",
  "Follow-up": "Write each as `- [ ] What is to be done @who (due 2026-12-31)`: it becomes a task.",
} as const;

type Section = keyof typeof sections;

/** Begins the line of an entry. What its writers cite elsewhere in the text, also of other incidents, does not count. */
const entryLineOf = ({ incident }: Facts) =>
  new RegExp(`^\\s*[-*+] \\[[^\\]]*\\]\\(\\S*/incidents/${incident.id}\\?at=(\\d+)#event-\\d+\\)`);
const taskLink = /\/app\/tasks\/(\d+)\)/g;

/** Maximum characters of a draft: less than a document may have, so that people can write into it. */
const longestDraft = 900_000;
/** Maximum characters of an entry, or of a task, in it. The line links to all of it. */
const longestWords = 2000;

const wordsOf = (text: string) => asTyped(shortened(text.trim(), longestWords));

const minute = (at: Date) => at.toISOString().slice(0, 16).replace("T", " ");

/** The whole draft, in Markdown. Times are in UTC. */
export function draftOf(facts: Facts): string {
  const { incident, happenings, tasks, more, publicUrl } = facts;
  return [
    `# ${asTyped(`${incident.name}: ${incident.title}`)}`,
    factsTable(facts),
    ...(Object.keys(sections) as Section[]).flatMap((section) => {
      const prompt = sections[section];
      return [
        `## ${section}`,
        ...(prompt === undefined ? ["Times are in UTC."] : [`_${prompt}_`]),
        ...given(section, facts),
        ...(section === "Timeline" ? [happenings.map((one) => entryLine(facts, one)).join("\n")] : []),
        ...(section === "Follow-up" && tasks.length > 0
          ? [tasks.map((task) => taskLine(facts, task)).join("\n")]
          : []),
        ...((section === "Timeline" && more.happenings) || (section === "Follow-up" && more.tasks)
          ? [`_Not all of them are here: see [the incident](${publicUrl}/app/incidents/${incident.id})._`]
          : []),
      ];
    }),
  ]
    .join("\n\n")
    .concat("\n");
}

/** What a whole draft has room for. */
export function draftable(facts: Facts): Facts {
  const more = { ...facts.more, happenings: true, tasks: true };
  const { happenings, tasks } = thatFit(
    draftOf({ ...facts, happenings: [], tasks: [], more }).length,
    facts,
    facts,
  );
  return {
    ...facts,
    happenings,
    tasks,
    more: {
      ...facts.more,
      happenings: facts.more.happenings || happenings.length < facts.happenings.length,
      tasks: facts.more.tasks || tasks.length < facts.tasks.length,
    },
  };
}

/** The first of the tasks, and of the entries, for which a text of this length has room. */
export function thatFit(
  length: number,
  facts: Facts,
  { happenings, tasks }: Pick<News, "happenings" | "tasks">,
): Pick<News, "happenings" | "tasks"> {
  let end = length;
  const some = <Item>(items: readonly Item[], lineOf: (facts: Facts, item: Item) => string) => {
    const left = items.findIndex((item) => {
      // With the empty lines around it.
      end += lineOf(facts, item).length + 3;
      return end > longestDraft;
    });
    return left < 0 ? items : items.slice(0, left);
  };
  return { tasks: some(tasks, taskLine), happenings: some(happenings, entryLine) };
}

/** What somebody has written about it already. */
function given(section: Section, { incident }: Facts): string[] {
  const texts = section === "Summary" ? [incident.description, incident.resolution ?? ""] : [];
  return texts.filter((text) => text.trim() !== "").map((text) => asTyped(text.trim()));
}

function factsTable({ incident, people, affected, more }: Facts): string {
  const { reportedAt, stableAt, closedAt, impactStartedAt, impactEndedAt } = incident;
  const since = (from: Date, to: Date | null) => to && `${minute(to)}, after ${durationText(from, to)}`;
  const roles = (one: Participant) =>
    [...new Set(one.roles.map(({ role }) => role))].filter((role) => role !== "participant").join(", ");
  const named = people.map((one) => [one.individual.name, roles(one)].filter(Boolean).join(": "));
  const rows: [string, string | null | undefined][] = [
    ["Priority", incident.incidentPriority.name],
    ["Type", incident.incidentType.name],
    ["Impact began", impactStartedAt && minute(impactStartedAt)],
    ["Reported", `${minute(reportedAt)}${incident.reporter ? ` by ${incident.reporter.name}` : ""}`],
    ["Stable", since(reportedAt, stableAt)],
    ["Impact ended", impactEndedAt && since(impactStartedAt ?? reportedAt, impactEndedAt)],
    ["Closed", since(reportedAt, closedAt)],
    ["Affected", [...affected.services, ...affected.applications].map(({ name }) => name).join(", ")],
    ["People", [...named, ...(more.people ? ["and others"] : [])].join("; ")],
    ["Cost", incident.cost > 0 ? String(incident.cost) : null],
  ];
  const lines = rows.filter(([, value]) => value).map(([name, value]) => `| ${name} | ${asTyped(value!)} |`);
  return [`| Incident | ${incident.name} |`, "| --- | --- |", ...lines].join("\n");
}

/** Lines after the first one are indented, so that they stay in the list's item. */
function entryLine({ incident, publicUrl }: Facts, { eventId, at, who, text, isSaid }: Happening): string {
  const address = `${publicUrl}/app/incidents/${incident.id}?at=${eventId}#event-${eventId}`;
  const words = wordsOf(text).replaceAll("\n", "  \n  ");
  // What was done may name who did it.
  const isNamed = !isSaid && text.startsWith(who) && !/^[\p{L}\p{N}]/u.test(text.slice(who.length));
  const by = isNamed ? "" : `**${literally(who)}** `;
  return `- [${minute(at)}](${address}) ${by}${words}`;
}

function taskLine({ publicUrl }: Facts, { id, description, status, assignees, resolveBy }: Task): string {
  const words = wordsOf(description).replaceAll(/\s*\n\s*/g, " ");
  const who = assignees.map(({ name }) => asTyped(name)).join(", ");
  const state = status === "Open" ? `due ${resolveBy.toISOString().slice(0, 10)}` : status.toLowerCase();
  return `- [${words}](${publicUrl}/app/tasks/${id}): ${[who, state].filter(Boolean).join(", ")}`;
}

/** What the text does not have, and may propose. */
export interface News {
  happenings: readonly Happening[];
  tasks: readonly Task[];
  /** Sections of the draft that it has no heading for, until the first entry is in it: then its writers have decided. */
  sections: string[];
}

/**
 * What is new since the text was drafted: entries and tasks that are newer than all that were drafted into it, or that its
 * lines link to. One that somebody has deleted from the text does not come back.
 */
export function newsOf(text: string, facts: Facts, drafted: readonly Drafted[]): News {
  const { happenings, tasks } = facts;
  const entries = new Set(happenings.map(({ eventId }) => eventId));
  const begin = entryLineOf(facts);
  // Anybody can write a link to what there is not.
  const cited = text
    .split("\n")
    .map((line) => Number(begin.exec(line)?.[1] ?? 0))
    .filter((id) => entries.has(id));
  const entry = newestOf([...cited, ...drafted.flatMap((one) => one.entries)]);
  const known = new Set(tasks.map(({ id }) => id));
  const linked = Array.from(text.matchAll(taskLink), ([, id]) => Number(id)).filter((id) => known.has(id));
  const task = newestOf([...linked, ...drafted.map(({ task }) => task)]);
  const headings = new Set(headingsOf(text).map(({ title }) => title));
  return {
    happenings: happenings.filter(({ eventId }) => eventId > entry),
    tasks: tasks.filter(({ id }) => id > task),
    sections: Object.keys(sections).filter((section) => entry === 0 && !headings.has(section.toLowerCase())),
  };
}

/**
 * The text with `news`. Nothing that it has is changed: an entry comes after the last one that happened before it, tasks
 * at the end of theirs, and missing sections at the end.
 */
export function withNews(text: string, facts: Facts, news: News): string {
  if (news.sections.length + news.happenings.length + news.tasks.length === 0) return text;
  const lines = text.replaceAll("\r\n", "\n").trimEnd().split("\n");
  if (news.sections.length > 0) {
    const drafted = draftOf({ ...facts, happenings: [], tasks: [] });
    const parts = drafted.split(/^(?=## )/m);
    for (const section of news.sections)
      lines.push(
        "",
        ...parts
          .find((part) => part.startsWith(`## ${section}\n`))!
          .trimEnd()
          .split("\n"),
      );
  }
  const times = new Map(facts.happenings.map(({ eventId, at }) => [eventId, at]));
  const begin = entryLineOf(facts);
  // The lines of entries, in their order. A text may have far more lines than these.
  const entries = lines.flatMap((line, index) => {
    const at = times.get(Number(begin.exec(line)?.[1]));
    return at === undefined ? [] : [{ index, at }];
  });
  for (const one of news.happenings) {
    const before = entries.findLastIndex(({ at }) => at <= one.at);
    const place =
      before >= 0
        ? endOfItem(lines, entries[before]!.index)
        : (entries[0]?.index ?? endOfSection(lines, "Timeline"));
    const added = insert(lines, place, entryLine(facts, one));
    for (const entry of entries) if (entry.index >= place) entry.index += added.count;
    entries.splice(before + 1, 0, { index: added.index, at: one.at });
  }
  for (const task of news.tasks) insert(lines, endOfSection(lines, "Follow-up"), taskLine(facts, task));
  return `${lines.join("\n")}\n`;
}

/** Lists begin after an empty line, and end before other text with one. Returns where the item is, and how many lines are new. */
function insert(lines: string[], place: number, item: string): { index: number; count: number } {
  const isItem = (line: string) => line === "" || /^\s*[-*+] |^ {2}\S/.test(line);
  const before = isItem(lines[place - 1] ?? "") ? [] : [""];
  const after = isItem(lines[place] ?? "") ? [] : [""];
  const added = [...before, ...item.split("\n"), ...after];
  lines.splice(place, 0, ...added);
  return { index: place + before.length, count: added.length };
}

/** Lines of code blocks are no headings. Titles are in lower case. */
function headingsOf(text: string): { title: string; line: number; level: number }[] {
  let fence: string | undefined;
  return text.split("\n").flatMap((content, line) => {
    const [mark] = /^ {0,3}(`{3,}|~{3,})/.exec(content)?.slice(1) ?? [];
    if (mark !== undefined) {
      if (fence === undefined) fence = mark;
      else if (mark.startsWith(fence)) fence = undefined;
      return [];
    }
    // It matches whatever follows, so that it takes time in proportion to the line.
    const [, marks, rest = ""] = /^(#{1,6})[ \t]+(.*)$/s.exec(content) ?? [];
    const title = withoutMarks(rest);
    return fence === undefined && marks && title !== ""
      ? [{ title: title.toLowerCase(), line, level: marks.length }]
      : [];
  });
}

/** A heading may end with marks, too. */
function withoutMarks(text: string): string {
  let end = text.trimEnd().length;
  while (text[end - 1] === "#") end -= 1;
  return text.slice(0, end).trim();
}

/** The line after an item of a list with what its writers have added: indented or plain lines, also after empty ones. */
function endOfItem(lines: readonly string[], start: number): number {
  let end = start + 1;
  for (let line = end; line < lines.length; line += 1) {
    const text = lines[line]!;
    const isPlain = lines[line - 1] !== "" && !/^\s*([-*+] |#|$)/.test(text);
    if (/^\s+\S/.test(text) || isPlain) end = line + 1;
    else if (text.trim() !== "") break;
  }
  return end;
}

/** The line after the last one of a section that is not empty; the end of the text without that section. */
function endOfSection(
  lines: readonly string[],
  title: Section,
  headings = headingsOf(lines.join("\n")),
): number {
  const at = headings.findIndex((one) => one.title === title.toLowerCase());
  if (at < 0) return lines.length;
  const { line, level } = headings[at]!;
  let end = headings.slice(at + 1).find((one) => one.level <= level)?.line ?? lines.length;
  while (end > line + 1 && lines[end - 1]!.trim() === "") end -= 1;
  return end;
}

/** An entry that was corrected, withdrawn or redacted, as it is now. */
export interface ChangedEntry {
  eventId: number;
  change: "corrected" | "withdrawn" | "redacted";
  /** The name of who made the last change, and when. */
  who: string;
  at: Date;
  text: string;
}

/** The entries of the incident that a text links to, anywhere. */
export function citedIn(text: string, incidentId: number): number[] {
  const links = text.matchAll(new RegExp(`/incidents/${incidentId}\\?at=(\\d+)#event-\\d+`, "g"));
  return [...new Set(Array.from(links, ([, id]) => Number(id)))].filter((id) => Number.isSafeInteger(id));
}

/**
 * Of `changed`, which the text cites: those whose earlier words it may still have. One that was withdrawn or redacted always
 * may. So may one that was corrected since it was drafted into the text, unless each link to it begins a line with exactly its
 * words as they are now. `created` is when the document was, for what was not drafted.
 */
export function outdatedIn(
  text: string,
  facts: Facts,
  {
    changed,
    drafted,
    created,
  }: { changed: readonly ChangedEntry[]; drafted: readonly Drafted[]; created: Date },
): ChangedEntry[] {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const begin = entryLineOf(facts);
  const starts = lines.flatMap((line, index) => {
    const id = begin.exec(line)?.[1];
    return id === undefined ? [] : [{ index, id: Number(id) }];
  });
  const words = (part: string) => part.replaceAll(/\s+/g, " ").trim();
  const now = new Map(changed.map(({ eventId, text }) => [eventId, words(wordsOf(text))]));
  for (const [place, { index, id }] of starts.entries()) {
    // Each line is read once, also where an item is within another one.
    const item = lines.slice(index, starts[place + 1]?.index);
    const quote = item.slice(0, endOfItem(item, 0)).join("\n").replace(begin, "").trimStart();
    if (words(quote.replace(/^\*\*(?:[^*\\]|\\.)*\*\* /, "")) === now.get(id))
      lines[index] = lines[index]!.replace(begin, "");
  }
  const others = new Set(citedIn(lines.join("\n"), facts.incident.id));
  const since = (id: number) => drafted.findLast(({ entries }) => entries.includes(id))?.at ?? created;
  return changed.filter(
    ({ eventId, change, at }) => change !== "corrected" || (at >= since(eventId) && others.has(eventId)),
  );
}

/** Sections of the draft that are in the text, and that nobody has written anything into. */
export function emptySections(text: string): string[] {
  const lines = text.split("\n");
  const headings = headingsOf(text);
  return (Object.keys(sections) as Section[]).filter((section) => {
    const found = headings.find(({ title }) => title === section.toLowerCase());
    if (!found) return false;
    const content = lines.slice(found.line + 1, endOfSection(lines, section, headings));
    const prompts = new Set<string>(["Times are in UTC.", `_${sections[section] ?? ""}_`]);
    return content.every((line) => line.trim() === "" || prompts.has(line.trim()));
  });
}

/** A time in which nothing was written down. */
export interface Gap {
  from: Date;
  to: Date;
}

/** Long enough that a reader asks what happened. */
const shortestGap = 30 * 60_000;
const mostGaps = 10;

/** The longest gaps of half an hour or more, from the beginning of the impact or the report until the incident was stable, in order. */
export function gapsOf({ incident, happenings, more }: Facts): Gap[] {
  const { reportedAt, impactStartedAt, stableAt, closedAt } = incident;
  const start = impactStartedAt && impactStartedAt < reportedAt ? impactStartedAt : reportedAt;
  const end = stableAt ?? closedAt;
  const times = [
    // Nothing is known of the time before the first of these, if there are more.
    ...(more.happenings ? [] : [start]),
    ...happenings.map(({ at }) => at),
    ...(end ? [end] : []),
  ].sort((a, b) => +a - +b);
  const within = times.filter((at) => at >= start && (!end || at <= end));
  const length = ({ from, to }: Gap) => +to - +from;
  return within
    .slice(1)
    .map((to, index): Gap => ({ from: within[index]!, to }))
    .filter((gap) => length(gap) >= shortestGap)
    .sort((a, b) => length(b) - length(a))
    .slice(0, mostGaps)
    .sort((a, b) => +a.from - +b.from);
}
