import { and, eq, gt } from "drizzle-orm";
import { delivery } from "../../../drizzle/schema/index.ts";
import { type DeliveryClaim, replacedReason } from "../../outbox/deliver.ts";
import { namingTime } from "../../outbox/late.ts";
import type { AppContext } from "../../plugin/context.ts";
import type { Message } from "../../plugin/facts.ts";
import { editTask } from "../message/correction.ts";
import { currentReminder } from "../reminder/remind.ts";
import { currentSummary } from "../summary/summarise.ts";
import { currentTaskReminder } from "../task/remind.ts";

/** It must not be sent any more, for this reason. */
export interface Obsolete {
  obsolete: string;
}

interface Current {
  message: Message;
  /** Every incident that the message mentions. */
  about: readonly number[];
}

/** Returns the message as it is to be sent now. A statement about the present is checked and written again. */
export async function currentOf(context: AppContext, row: DeliveryClaim): Promise<Current | Obsolete> {
  const { subject, text, about, occurredAt, queuedAt, topic, task } = row;
  if (await hasNewer(context, row)) return { obsolete: replacedReason };
  // Even without a topic: from a release that did not check them again.
  if (task === "incident-status-report-reminder") return await currentReminder(context, row);
  if (task === "incident-task-reminders") return await currentTaskReminder(context, row);
  // The message keeps the time of what it reports.
  if (task === editTask) return { message: { subject, text }, about };
  if (topic === null) {
    const when = { now: context.clock.now(), timezone: context.config.timezone };
    return { message: namingTime({ subject, text }, { occurredAt: occurredAt ?? queuedAt, ...when }), about };
  }
  if (task === "incident-daily-summary") return await currentSummary(context, row);
  return { message: { subject, text }, about };
}

/** One that was queued while this one was being sent. Parts of one message have the same number. */
async function hasNewer(
  { db }: AppContext,
  { topic, pluginSlug, sequence }: DeliveryClaim,
): Promise<boolean> {
  if (topic === null || sequence === null) return false;
  const isNewer = and(
    eq(delivery.topic, topic),
    gt(delivery.sequence, sequence),
    eq(delivery.pluginSlug, pluginSlug),
  );
  return (await db.$count(delivery, isNewer)) > 0;
}
