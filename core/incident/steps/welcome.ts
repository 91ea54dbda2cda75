import { literally } from "../../../platform/markdown.ts";
import type { IncidentFacts, Message } from "../../plugin/facts.ts";

/** The first that is said in a conversation. */
export function welcomeMessage(facts: IncidentFacts): Message {
  const { name, title, type, priority, weblink, reporter, commander } = facts;
  const lines = [
    `Type: ${literally(type.name)}, priority: ${literally(priority.name)}`,
    ...(reporter ? [`Reporter: ${literally(reporter.name)}`] : []),
    commander ? `Commander: ${literally(commander.name)}` : "Nobody commands yet",
    weblink,
  ];
  return { subject: `${name}: ${title}`, text: lines.join("\n\n") };
}
