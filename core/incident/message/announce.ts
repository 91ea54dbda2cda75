import { and, desc, eq, isNull, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { conversation, conversationMessage, event, individual } from "../../../drizzle/schema/index.ts";
import { nameByAddress, type Person } from "../../catalog/person/person.ts";
import { channelSlug } from "../../outbox/conversations.ts";
import { deliver, keyOf, type Outgoing } from "../../outbox/deliver.ts";
import { namingTime } from "../../outbox/late.ts";
import type { Plugins } from "../../plugin/choose.ts";
import type { AppContext } from "../../plugin/context.ts";
import type { Message } from "../../plugin/facts.ts";
import type { Incident } from "../incident/incident.ts";
import type { EntryKind } from "../timeline/entry.ts";
import type { EventKind } from "../timeline/event.ts";
import {
  type About,
  changeMessage,
  commandMessage,
  noteMessage,
  reopenedMessage,
  reportMessage,
  saidMessage,
} from "./messages.ts";

// The messages and decisions of an incident go to each conversation that is open or yet to be opened, in the
// transaction that writes them: into its own channel at once, and to the others as deliveries. Each delivery checks who
// may read it.

export type AnnounceContext = Pick<AppContext, "clock" | "config" | "plugins">;
export type Subject = Pick<Incident, "id" | "name" | "title">;

/** Begins the keys of the messages that announce an entry. `id` is that of the note, the report or the message. */
export function entryKey(kind: EntryKind, id: number): Pick<Outgoing["key"], "task" | "what"> {
  if (kind === "note") return { task: "incident-note", what: `event-${id}` };
  if (kind === "message.sent") return { task: "incident-message", what: `message-${id}` };
  return { task: "incident-status-report", what: `report-${id}` };
}

/** Announces a person's message, to all or only to `recipient`. It is not sent to `origin`, where it was written. */
export async function announceSaid(
  tx: Transaction,
  context: AnnounceContext,
  incident: Subject,
  said: { id: number; author: Person; recipient: Person | null; text: string; origin: string },
): Promise<void> {
  const { id, author, recipient, text, origin } = said;
  await send(tx, context, incident, {
    key: entryKey("message.sent", id),
    message: saidMessage(incident, { author: author.name, text, isDirect: recipient !== null }),
    // It is in the channel already.
    except: [channelSlug, origin],
    individualId: recipient?.id,
  });
}

/** Announces a note on the timeline, of something that happened `at` this time. */
export async function announceNote(
  tx: Transaction,
  context: AnnounceContext,
  incident: Subject,
  note: { id: number; user: string; text: string; at: Date },
): Promise<void> {
  if (!isHeard(context.plugins)) return;
  const { id, user, text, at: occurredAt } = note;
  const message = noteMessage(aboutOf(context, incident), { author: await nameOf(tx, user), text });
  await send(tx, context, incident, { key: entryKey("note", id), message, occurredAt });
}

export async function announceReport(
  tx: Transaction,
  context: AnnounceContext,
  incident: Subject,
  report: { id: number; author: Person; conditions: string; actions: string; needs: string },
): Promise<void> {
  const message = reportMessage(aboutOf(context, incident), { ...report, author: report.author.name });
  await send(tx, context, incident, {
    key: entryKey("report.written", report.id),
    message,
  });
}

/** Announces a change of an incident's status, priority or visibility, but not through the plugins `except`. */
export async function announceChange(
  tx: Transaction,
  context: AnnounceContext,
  {
    before,
    after,
    user,
    except,
  }: { before: Incident; after: Incident; user: string; except: readonly string[] },
): Promise<void> {
  const fields = ["status", "incidentPriorityId", "visibility"] as const;
  if (fields.every((field) => before[field] === after[field])) return;
  if (!isHeard(context.plugins)) return;
  const who = await nameOf(tx, user);
  const isRestricted = before.visibility === "Open" && after.visibility === "Restricted";
  const remaining = context.plugins.ofType("conversation").filter(({ methods }) => !methods.restrict);
  await send(tx, context, after, {
    except: [
      ...except,
      // Non-participants can still read these conversations, so these deliveries would be dead at once.
      ...(isRestricted ? remaining.map(({ slug }) => slug).filter((slug) => slug !== channelSlug) : []),
    ],
    key: { task: "incident-change", what: `incident-${after.id}-version-${after.version}` },
    message: changeMessage(aboutOf(context, after), { before, after, who }),
  });
}

/** Announces a new commander, identified by the id of their role. */
export async function announceCommand(
  tx: Transaction,
  context: AnnounceContext,
  incident: Subject,
  command: { roleId: number; name: string; from: string | undefined },
): Promise<void> {
  await send(tx, context, incident, {
    key: { task: "incident-commander", what: `role-${command.roleId}` },
    message: commandMessage(aboutOf(context, incident), command),
  });
}

/** Announces in a reopened conversation that its incident was reopened, for the `time`-th time. */
export async function announceReopened(
  tx: Transaction,
  context: AnnounceContext,
  incident: Subject,
  { pluginSlug, time }: { pluginSlug: string; time: number },
): Promise<void> {
  const [last] = await tx
    .select({ user: event.actor })
    .from(event)
    .where(and(eq(event.incidentId, incident.id), eq(event.kind, "incident.reopened" satisfies EventKind)))
    .orderBy(desc(event.id))
    .limit(1);
  const who = await nameOf(tx, last?.user ?? "");
  await deliver(tx, context, [
    {
      key: { task: "incident-reopened", what: `incident-${incident.id}-${time}`, whom: "conversation" },
      incidentId: incident.id,
      pluginSlug,
      message: reopenedMessage(aboutOf(context, incident), who),
    },
  ]);
}

/** Whether there is any conversation plugin. */
export function isHeard(plugins: Plugins): boolean {
  return plugins.ofType("conversation").length > 0;
}

interface Announcement {
  key: Pick<Outgoing["key"], "task" | "what">;
  message: Message;
  except?: readonly string[];
  individualId?: number;
  /** By default now. */
  occurredAt?: Date;
}

async function send(
  tx: Transaction,
  context: AnnounceContext,
  { id: incidentId }: Subject,
  { key: { task, what }, message, except = [], individualId, occurredAt }: Announcement,
): Promise<void> {
  const slugs = context.plugins.ofType("conversation").map(({ slug }) => slug);
  if (slugs.includes(channelSlug) && !except.includes(channelSlug)) {
    const now = context.clock.now();
    const { timezone } = context.config;
    const timed = namingTime(message, { occurredAt: occurredAt ?? now, now, timezone });
    await writeInChannel(tx, context, incidentId, { key: keyOf(task, what), message: timed });
  }
  const others = slugs.filter((slug) => slug !== channelSlug && !except.includes(slug));
  if (others.length === 0) return;
  const whom = individualId === undefined ? "conversation" : `individual-${individualId}`;
  const to = { incidentId, individualId, except: [channelSlug, ...except], awaitsOpening: true, occurredAt };
  await deliver(tx, context, [{ key: { task, what, whom }, ...to, message }]);
}

/** Writes into the incident's own channel, which is in our database and needs no delivery. */
async function writeInChannel(
  tx: Transaction,
  { clock }: AnnounceContext,
  incidentId: number,
  { key, message }: { key: string; message: Message },
): Promise<void> {
  const { conversationId, at, text, deliveryKey } = conversationMessage;
  const columns = [conversationId, at, text, deliveryKey].map(({ name }) => sql.identifier(name));
  const said = `${message.subject}\n\n${message.text}`;
  await tx.execute(sql`
    insert into ${conversationMessage} (${sql.join(columns, sql`, `)})
    select ${conversation.id}, ${clock.now().toISOString()}::timestamptz, ${said}, ${key} from ${conversation}
    where ${and(
      eq(conversation.incidentId, incidentId),
      eq(conversation.pluginSlug, channelSlug),
      isNull(conversation.archivedAt),
    )}
    on conflict do nothing`);
}

export async function nameOf(tx: Transaction, user: string): Promise<string> {
  const [found] = await tx
    .select({ name: individual.name })
    .from(individual)
    .where(eq(individual.email, user));
  return found?.name ?? nameByAddress(user);
}

export function aboutOf({ config }: AnnounceContext, { id, name, title }: Subject): About {
  return { name, title, weblink: `${config.publicUrl}/incidents/${id}` };
}
