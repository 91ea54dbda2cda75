import { and, eq, inArray } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { incident } from "../../drizzle/schema/index.ts";
import { after } from "../clock.ts";
import type { PluginContext } from "../context.ts";
import { deliver, type Outgoing } from "../delivery/deliver.ts";
import { openConversations } from "../delivery/reach.ts";
import { writtenSince } from "../delivery/written.ts";
import type { Fault } from "../schedule/finish.ts";
import { countListed, participations, readListed } from "./listed.ts";
import { restrictedMessage, type Summary, summaryMessage } from "./message.ts";
import { summaryTask as task, type Window } from "./window.ts";

const daySeconds = 24 * 3600;
/** Incidents that a message spells out. */
const most = 100;

/** What everybody may read of a day. */
export async function openSummary(db: Pick<Database, "select">, window: Window): Promise<Summary> {
  const open = eq(incident.visibility, "Open");
  return { incidents: await readListed(db, window, open, most), ...(await countListed(db, window, open)) };
}

/**
 * Enqueues, to each of these people, the summary of the Open incidents, by one of those in which they take part; and of
 * each Restricted one in which they do, what is to be said of it, by that one alone.
 */
export async function summarise(
  tx: Transaction,
  context: Pick<PluginContext, "clock" | "plugins" | "config"> & { window: Window },
  summary: Summary,
  people: readonly number[],
): Promise<{ done: number; skipped: number; faults: Fault[] }> {
  const { window, plugins, config } = context;
  const { until: slot } = window;
  const theirs = await participations(tx, window, people);
  const ids = [...new Set(theirs.map((row) => row.incident.id))];
  const reachable = await openConversations(tx, plugins, ids);
  const date = dateOf(slot, config.timezone);
  const { publicUrl, timezone } = config;
  const words = { date, window, timezone, publicUrl };
  const restrictedIds = theirs
    .filter((row) => row.incident.visibility === "Restricted")
    .map((row) => row.incident.id);
  const isOne = and(inArray(incident.id, restrictedIds), eq(incident.visibility, "Restricted"));
  const restricted = await readListed(tx, window, isOne, restrictedIds.length);
  const [outgoing, faults] = [[], []] as [Outgoing[], Fault[]];
  let skipped = 0;
  for (const [individualId, rows] of Map.groupBy(theirs, (row) => row.individualId)) {
    const to = { individualId };
    const key = (what: string) => ({ task, what, whom: `individual-${individualId}` });
    const open = rows.filter((row) => row.incident.visibility === "Open");
    const by = open.find((row) => reachable.has(row.incident.id));
    if (by) {
      const about = summary.incidents.map(({ id }) => id);
      const message = summaryMessage(summary, words);
      outgoing.push({ key: key(date), incidentId: by.incident.id, about, ...to, message });
    } else if (open.some(({ incident: { status } }) => status === "Active")) {
      const reason = "None of their incidents has an open conversation by which to send the summary";
      faults.push({ item: `individual ${individualId}`, reason });
    } else skipped += 1;
    for (const row of rows) {
      const one = restricted.find(({ id }) => id === row.incident.id);
      if (!one) continue;
      if (!reachable.has(one.id)) {
        const reason = "This Restricted incident has no open conversation by which to tell of it";
        if (one.status === "Active") faults.push({ item: `individual ${individualId}, ${one.name}`, reason });
        continue;
      }
      const message = restrictedMessage(one, words);
      outgoing.push({ key: key(`${date}-incident-${one.id}`), incidentId: one.id, ...to, message });
    }
  }
  // Of a day whose summary somebody ran before its time, or of a run that was interrupted.
  const written = await writtenSince(tx, after(slot, -2 * daySeconds), { task, what: date }, people);
  const { reached } = await deliver(tx, context, outgoing);
  const done = reached.filter((one) => !written.has(one)).length;
  return { done, skipped: skipped + reached.length - done, faults };
}

function dateOf(slot: Date, timezone: string): string {
  return Temporal.Instant.fromEpochMilliseconds(slot.getTime())
    .toZonedDateTimeISO(timezone)
    .toPlainDate()
    .toString();
}
