import { and, eq, gte, inArray, lte, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../../drizzle/client.ts";
import { delivery, deliveryStates, incident } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { openConversations } from "../../outbox/conversations.ts";
import { type DeliveryClaim, deliver, keyOf, type Outgoing } from "../../outbox/deliver.ts";
import { enqueuedSince } from "../../outbox/enqueued.ts";
import type { AppContext } from "../../plugin/context.ts";
import type { Message } from "../../plugin/facts.ts";
import type { Fault } from "../../schedule/runs.ts";
import { summaryTask as task } from "../../schedule/tasks.ts";
import { countListed, participations, readListed } from "./listed.ts";
import { restrictedMessage, type Summary, summaryMessage } from "./message.ts";
import type { Window } from "./window.ts";

const daySeconds = 24 * 3600;
/** How many incidents a message lists. */
const most = 100;

/** The part of a day's summary that everybody may read. */
export async function openSummary(db: Pick<Database, "select">, window: Window): Promise<Summary> {
  const open = eq(incident.visibility, "Open");
  return { incidents: await readListed(db, window, open, most), ...(await countListed(db, window, open)) };
}

/**
 * Enqueues for each of these people the summary of the Open incidents, sent through one in which they participate, and
 * a separate message about each of their Restricted incidents, sent through that incident only.
 */
export async function summarise(
  tx: Transaction,
  context: Pick<AppContext, "clock" | "plugins" | "config"> & { window: Window; name: string },
  summary: Summary,
  people: readonly number[],
): Promise<{ done: number; skipped: number; faults: Fault[] }> {
  const { window, name: what, plugins, config } = context;
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
  const outgoing: Outgoing[] = [];
  const faults: Fault[] = [];
  let skipped = 0;
  for (const [individualId, rows] of Map.groupBy(theirs, (row) => row.individualId)) {
    const to = { individualId, occurredAt: window.since };
    const key = (what: string) => ({ task, what, whom: `individual-${individualId}` });
    const open = rows.filter((row) => row.incident.visibility === "Open");
    const by = open.find((row) => reachable.has(row.incident.id));
    if (by) {
      const about = summary.incidents.map(({ id }) => id);
      const message = summaryMessage(summary, words);
      const topic = topicOf(individualId);
      outgoing.push({ key: key(what), incidentId: by.incident.id, about, ...to, topic, message });
    } else if (open.some(({ incident: { status } }) => status === "Active")) {
      const reason = "None of their incidents has an open conversation to send the summary to";
      faults.push({ item: `individual ${individualId}`, reason });
    } else skipped += 1;
    for (const row of rows) {
      const one = restricted.find(({ id }) => id === row.incident.id);
      if (!one) continue;
      if (!reachable.has(one.id)) {
        const reason = "This Restricted incident has no open conversation to send its summary to";
        if (one.status === "Active") faults.push({ item: `individual ${individualId}, ${one.name}`, reason });
        continue;
      }
      const message = restrictedMessage(one, words);
      const topic = topicOf(individualId, one.id);
      outgoing.push({ key: key(`${what}-incident-${one.id}`), incidentId: one.id, ...to, topic, message });
    }
  }
  // From a summary that was run early, or a run that was interrupted.
  const enqueued = await enqueuedSince(tx, after(slot, -2 * daySeconds), { task, what }, people);
  const { reached } = await deliver(tx, context, outgoing);
  const done = reached.filter((one) => !enqueued.has(one)).length;
  return { done, skipped: skipped + reached.length - done, faults };
}

/** What a summary is about: all Open incidents, or a Restricted one of this person. */
const topicOf = (individualId: number, incidentId?: number) =>
  [`individual-${individualId}`, ...(incidentId === undefined ? [] : [`incident-${incidentId}`])].join("-");

/** Writes a queued summary as of now. Its period began with that of the oldest one that it replaces. */
export async function currentSummary(
  { db, clock, config }: Pick<AppContext, "db" | "clock" | "config">,
  row: Pick<DeliveryClaim, "key" | "topic" | "incidentId" | "individualId" | "occurredAt" | "queuedAt">,
): Promise<{ message: Message; about: number[] } | { obsolete: string }> {
  const { key, topic, incidentId, individualId, occurredAt, queuedAt } = row;
  const date = key.split("/")[1]!.slice(0, "2026-12-01".length);
  const window = { since: occurredAt ?? queuedAt, until: clock.now() };
  const words = { date, window, timezone: config.timezone, publicUrl: config.publicUrl };
  if (topic !== keyOf(task, topicOf(individualId!, incidentId))) {
    const summary = await openSummary(db, window);
    // The one through which it is sent, too: this message must not go through a Restricted one.
    const about = [incidentId, ...summary.incidents.map(({ id }) => id)];
    return { message: summaryMessage(summary, words), about };
  }
  const isIt = and(eq(incident.id, incidentId), eq(incident.visibility, "Restricted"));
  const [one] = await readListed(db, window, isIt, 1);
  if (!one) return { obsolete: "Its incident is no longer Restricted, or no longer part of the summary" };
  return { message: restrictedMessage(one, words), about: [incidentId] };
}

/**
 * The name of a summary in its keys: its date, or another name if one for that date was sent while the clock was ahead
 * (`svc scheduler rewind`).
 */
export async function summaryName(
  db: Pick<Database, "select">,
  slot: Date,
  timezone: string,
): Promise<string> {
  const date = dateOf(slot, timezone);
  const [last] = await db
    .select({ rewound: sql<string | null>`max(substring(${delivery.key} from '~([0-9]+)'))` })
    .from(delivery)
    .where(
      and(
        // Written like the index.
        inArray(delivery.state, [...deliveryStates]),
        // By the clock that was ahead, they were queued on that date, or up to six hours later.
        gte(delivery.queuedAt, after(slot, -2 * daySeconds)),
        lte(delivery.queuedAt, after(slot, 2 * daySeconds)),
        sql`starts_with(${delivery.key}, ${`${keyOf(task)}/${date}~`})`,
      ),
    );
  return last?.rewound ? `${date}-again-${last.rewound}` : date;
}

function dateOf(slot: Date, timezone: string): string {
  return slot.toTemporalInstant().toZonedDateTimeISO(timezone).toPlainDate().toString();
}
