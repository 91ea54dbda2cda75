import { InvalidInput } from "../../platform/errors.ts";
import type { StatusReport } from "./incident.ts";
import { sectionsOf, sectionText, templateOf, withoutComment } from "./template.ts";
import { checkText } from "./written_text.ts";

/** What people write in a status report. */
export type ReportParts = Pick<StatusReport, "conditions" | "actions" | "needs">;

export const headings = ["Conditions", "Actions", "Needs"];

/** A report under its headings. */
export function reportText({ conditions, actions, needs }: ReportParts): string {
  const parts = [conditions, actions, needs].map((text, at) => [headings[at]!, text] as const);
  return withoutComment(templateOf([], parts)).trim();
}

/** @throws InvalidInput */
export function parseReport(text: string): ReportParts {
  return checkedReport(sectionsOf(text, headings));
}

/** @throws InvalidInput */
export function checkedReport(texts: readonly string[]): ReportParts {
  const [conditions = "", actions = "", needs = ""] = texts.map(sectionText);
  if (conditions === "" && actions === "" && needs === "")
    throw new InvalidInput("report", "the report is empty: nothing was sent");
  checkText(conditions, "conditions");
  for (const [what, value] of Object.entries({ actions, needs })) if (value) checkText(value, what);
  return { conditions, actions, needs };
}
