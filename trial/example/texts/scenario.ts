import type { TeamKey } from "./people.ts";

/** What an incident was about, without times. Each text is whole sentences; they are said by people and in documents. */
export interface Scenario {
  title: string;
  description: string;
  type: "Availability" | "Data Loss" | "Security" | "Vulnerability" | "Simulation" | "Other";
  priority: "Info" | "Low" | "Medium" | "High";
  /** Otherwise as its type starts with. */
  visibility?: "Open" | "Restricted";
  team: TeamKey;
  /** Who found it, by first name. */
  reporter: string;
  /** Others who must be in it. */
  with?: string[];
  /** Closed unless told. */
  status?: "Active" | "Stable";
  /** When it was reported; without it, some time in the three months before. */
  hoursAgo?: number;
  /** Hours until it was stable. */
  hours?: number;
  /** Of an Active one: hours since the last status report, if there is to be one. */
  quiet?: number;
  reopened?: true;
  impact: string;
  finding: string;
  action: string;
  needs: string;
  resolution: string;
  /** What its review asks for, as a task says it. */
  followUps: string[];
  /** Written by hand; `due` in hours before (negative) or after the present. */
  tasks?: { text: string; who: string[]; due: number; status?: "Resolved" | "Cancelled"; quiet?: true }[];
}
