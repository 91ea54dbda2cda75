// A timeline for people, in the terminal and on the pages. What somebody said is shown whole: status reports, notes and
// messages. What the server did by itself, such as the four steps after somebody has joined, is folded into the line of
// the event before. Imports nothing, because every command of the terminal loads it.

/** The kinds of events that have the words of a person. */
export const saidKinds = ["note", "report.written", "message.sent"] as const;

export function isSaid({ kind }: { kind: string }): boolean {
  return (saidKinds as readonly string[]).includes(kind);
}

interface Foldable {
  kind: string;
  actor: string;
  data?: Record<string, unknown> | null;
  /** The name of the incident, where events of several are mixed. */
  incident?: string;
}

/** An event, and what followed from it. */
export interface Folded<Event> {
  event: Event;
  more: Event[];
  /** The server did all of it by itself. */
  isMachinery?: boolean;
}

/** Whether the server did this by itself. `before` is the event before it. */
function isMachinery(event: Foldable, before?: Foldable): boolean {
  // Somebody must see these.
  if (/^(step\.failed|reminder\.sent|access\..*)$/.test(event.kind) || isSaid(event)) return false;
  if (event.actor === "system" || event.actor === "worker") return true;
  // Who joins gets a role.
  return (
    event.kind === "role.assumed" &&
    before?.kind === "participant.joined" &&
    event.data?.participant_id === before.data?.participant_id
  );
}

/** Folds events of one incident, or of several with their names. `before` is the event before the first one. */
export function folded<Event extends Foldable>(events: readonly Event[], before?: Event): Folded<Event>[] {
  const entries: Folded<Event>[] = [];
  let previous = before;
  for (const event of events) {
    const last = entries.at(-1);
    const isByServer = isMachinery(event, previous);
    previous = event;
    if (isByServer && last && !isSaid(last.event) && last.event.incident === event.incident)
      last.more.push(event);
    else entries.push({ event, more: [], isMachinery: isByServer });
  }
  return entries;
}

/** What was folded into one line: each different description, with how often. */
export function foldedText({ event, more }: Folded<{ description: string }>): string {
  const counts = new Map<string, number>();
  for (const one of [event, ...more]) counts.set(one.description, (counts.get(one.description) ?? 0) + 1);
  return [...counts].map(([text, count]) => (count > 1 ? `${text} (${count} times)` : text)).join("; ");
}
