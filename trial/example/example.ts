// The example as plain data, by domain. It knows neither tables nor revisions: trial/example/load.ts writes it with the
// tables of this release. Incident types and priorities are named and not numbered, since `populate` makes them.

export type Role = "commander" | "scribe" | "liaison" | "participant" | "reporter" | "observer";

export interface Example {
  /** The present, before which all of it happened. */
  now: Date;
  individuals: ExampleIndividual[];
  teams: ExampleTeam[];
  services: ExampleService[];
  /** Where the commander of a type is on call. */
  commanders: { type: string; serviceId: number }[];
  terms: ExampleTerm[];
  definitions: {
    id: number;
    text: string;
    termIds: number[];
    source: string | null;
    externalId: string | null;
    at: Date;
  }[];
  applications: {
    id: number;
    name: string;
    description: string;
    uri: string;
    source: string | null;
    externalId: string | null;
    at: Date;
  }[];
  documents: ExampleDocument[];
  templates: { type: string; resourceType: string; documentId: number }[];
  incidents: ExampleIncident[];
  participants: {
    id: number;
    incidentId: number;
    individualId: number;
    joinedAt: Date;
    leftAt: Date | null;
  }[];
  roles: ExampleRole[];
  reports: ExampleReport[];
  /** Reminders to report that were sent already. */
  reminders: { incidentId: number; anchor: Date; k: number; remindedAt: Date }[];
  tasks: ExampleTask[];
  conversations: { id: number; incidentId: number; createdAt: Date; archivedAt: Date | null }[];
  messages: ExampleMessage[];
  groups: { id: number; incidentId: number; name: string; createdAt: Date }[];
  groupMembers: {
    id: number;
    groupId: number;
    individualId: number | null;
    teamId: number | null;
    addedAt: Date;
  }[];
  recommendations: ExampleRecommendation[];
  steps: ExampleStep[];
  events: ExampleEvent[];
}

/** For what types, priorities and words of descriptions somebody or something is proposed. */
export interface Links {
  types: string[];
  priorities: string[];
  termIds: number[];
}

export interface ExampleIndividual extends Links {
  id: number;
  name: string;
  email: string;
  at: Date;
}

export interface ExampleTeam extends Links {
  id: number;
  name: string;
  description: string;
  email: string;
  at: Date;
}

export interface ExampleService {
  id: number;
  name: string;
  description: string;
  at: Date;
  rotation: { startsAt: Date; shiftHours: number; members: number[] };
}

export interface ExampleTerm {
  id: number;
  text: string;
  discoverable: boolean;
  source: string | null;
  externalId: string | null;
  deletedAt: Date | null;
  at: Date;
}

export interface ExampleDocument extends Links {
  id: number;
  name: string;
  description: string;
  resourceType: string;
  incidentId: number | null;
  weblink: string | null;
  createdAt: Date;
  updatedAt: Date;
  /** Markdown, and how often it was written; null for what is only a link. */
  content: { text: string; version: number } | null;
  /** The version whose tasks are known; null: none was read yet. */
  tasksOf: number | null;
  tasksReadAt: Date | null;
  /** Terms in its text; null: it was not read since it changed. */
  foundTermIds: number[] | null;
}

export interface ExampleIncident {
  id: number;
  title: string;
  description: string;
  status: "Active" | "Stable" | "Closed";
  visibility: "Open" | "Restricted";
  type: string;
  priority: string;
  resolution: string | null;
  reportedAt: Date;
  stableAt: Date | null;
  closedAt: Date | null;
  version: number;
  updatedAt: Date;
  /** Changes that its cost depends on. */
  costBasis: number;
}

export interface ExampleRole {
  id: number;
  participantId: number;
  incidentId: number;
  role: Role;
  assumedAt: Date;
  renouncedAt: Date | null;
}

export interface ExampleReport {
  id: number;
  incidentId: number;
  authorId: number;
  conditions: string;
  actions: string;
  needs: string;
  createdAt: Date;
}

export interface ExampleTask {
  id: number;
  incidentId: number;
  description: string;
  status: "Open" | "Resolved" | "Cancelled";
  creatorId: number | null;
  assigneeIds: number[];
  resolveBy: Date;
  resolvedAt: Date | null;
  documentId: number | null;
  externalId: string | null;
  deletedAt: Date | null;
  reminders: boolean;
  lastReminderAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  version: number;
}

export interface ExampleMessage {
  id: number;
  conversationId: number;
  at: Date;
  /** Null: the service itself. */
  authorId: number | null;
  recipientId: number | null;
  text: string;
  deliveryKey: string | null;
}

export interface ExampleRecommendation {
  id: number;
  incidentId: number;
  pluginSlug: string;
  documentId: number | null;
  individualId: number | null;
  teamId: number | null;
  reasons: { kind: "incident_type" | "incident_priority" | "term"; name: string }[];
  createdAt: Date;
}

export interface ExampleStep {
  incidentId: number;
  step: string;
  state: "Done" | "Failed";
  attempts: number;
  finishedAt: Date | null;
  error: string | null;
}

export interface ExampleEvent {
  id: number;
  incidentId: number;
  at: Date;
  actor: string;
  source: string;
  kind: string;
  description: string;
  data: Record<string, unknown>;
}
