import { minuteText } from "../../../platform/duration.ts";
import { literally } from "../../../platform/markdown.ts";
import type { Config } from "../../config.ts";
import type { Message } from "../../plugin/facts.ts";
import { taskLine } from "./write.ts";

export interface OverdueTask {
  id: number;
  description: string;
  resolveBy: Date;
  incident: { name: string; title: string };
}

/** How many tasks a message lists. The others are counted. */
const most = 50;

/** Reminds one person of their overdue tasks, oldest first. */
export function overdueMessage(
  tasks: readonly OverdueTask[],
  { publicUrl, timezone }: Pick<Config, "publicUrl" | "timezone">,
): Message {
  const [first] = tasks;
  const names = new Set(tasks.map(({ incident }) => incident.name));
  const [what, ask] =
    tasks.length === 1
      ? [
          "a task of yours is overdue",
          "This task is overdue. Set it to Resolved if it is done, or change its due time:",
        ]
      : [
          `${tasks.length} tasks of yours are overdue`,
          "These tasks are overdue. Set those that are done to Resolved, and change the due time of the rest:",
        ];
  const lines = tasks.slice(0, most).map(({ id, description, resolveBy, incident: { name, title } }) => {
    const where = `${name}: ${literally(title)}`;
    return `- ${literally(taskLine(description))} (${where}), due ${minuteText(resolveBy, timezone)}\n  ${publicUrl}/tasks/${id}`;
  });
  const rest = tasks.length - lines.length;
  const text = [ask, lines.join("\n"), ...(rest > 0 ? [`And ${rest} more.`] : [])];
  return {
    subject: names.size === 1 && first ? `${first.incident.name}: ${what}` : capital(what),
    text: text.join("\n\n"),
  };
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
