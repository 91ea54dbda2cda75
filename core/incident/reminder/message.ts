import { durationText } from "../../../platform/duration.ts";
import { literally } from "../../../platform/markdown.ts";
import type { Message } from "../../plugin/facts.ts";

export interface ReportDue {
  incident: { id: number; name: string; title: string };
  priority: string;
  /** When the last report was written or, without one, when the incident was reported. */
  anchor: Date;
  hasReport: boolean;
}

/** Asks for a status report, and says how to write one. */
export function reminderMessage(
  { incident: { id, name, title }, priority, anchor, hasReport }: ReportDue,
  { now, publicUrl }: { now: Date; publicUrl: string },
): Message {
  const since = durationText(anchor, now);
  const lines = [
    `**${name}: ${literally(title)}** (priority ${literally(priority)}) is Active, and ${
      hasReport
        ? `its last status report is ${since} old.`
        : `nobody has written a status report since it was reported ${since} ago.`
    }`,
    "Say how it stands: what is the case (conditions), what is being done (actions), what is missing (needs):",
    `POST ${publicUrl}/incidents/${id}/reports\n{"conditions": "...", "actions": "...", "needs": "..."}`,
    `${publicUrl}/incidents/${id}`,
  ];
  return { subject: `${name}: a status report is due`, text: lines.join("\n\n") };
}
