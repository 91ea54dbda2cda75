import type { Io } from "../io.ts";
import { type Column, table, widthOf } from "../table.ts";
import { printable } from "../text.ts";
import type { Incident } from "./incident.ts";
import { nameOf } from "./people.ts";
import { ageColumn, stylesOf, titleOf } from "./text.ts";

const columns: Column[] = [
  { header: "NAME" },
  { header: "STATUS", leaveOut: 3 },
  { header: "PRIORITY", leaveOut: 2 },
  { header: "TITLE", flexible: true },
  { header: "COMMANDER", flexible: true, leaveOut: 1 },
];

/** A line for each incident, as wide as the terminal at most. */
export function incidentTable(incidents: readonly Incident[], io: Io): string {
  const rows = incidents.map((one) => [
    one.name,
    one.status,
    printable(one.incident_priority.name, 80),
    titleOf(one),
    nameOf(one.commander),
    ageColumn(one.reported_at, io),
  ]);
  // Other programs get the time itself.
  const when = { header: io.stdout.isTTY ? "AGE" : "REPORTED" };
  const text = table([...columns, when], rows, widthOf(io.stdout));
  const styled = stylesOf(io);
  const [header = "", ...lines] = text.split("\n");
  return [styled(header, "bold"), ...lines].join("\n");
}
