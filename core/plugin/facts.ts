// What plugins get. Times are RFC 3339 in UTC, addresses are canonical, ids are ours.

/** A record with a name chosen by a person. */
export interface Named {
  id: number;
  name: string;
}

export interface PersonFacts {
  id: number;
  name: string;
  email: string;
}

export interface TeamFacts {
  id: number;
  name: string;
  /** The address of its mailing list. */
  email?: string;
}

/** A service with an on-call rotation. */
export interface ServiceFacts {
  id: number;
  name: string;
  /** The plugin's identifier. Absent where our id is enough. */
  externalId?: string;
}

export interface IncidentFacts {
  id: number;
  /** `INC-1` */
  name: string;
  title: string;
  description: string;
  status: "Active" | "Stable" | "Closed";
  /** A Restricted incident is for its participants only: a plugin must not show it to others. */
  visibility: "Open" | "Restricted";
  type: Named;
  /** Higher ranks are more urgent. */
  priority: Named & { rank: number };
  /** Terms that appear in its title or description. */
  terms: readonly { id: number; text: string }[];
  reportedAt: string;
  /** The address of the incident, for people. */
  weblink: string;
  reporter?: PersonFacts;
  commander?: PersonFacts;
}

/** A document as its plugin knows it. */
export interface DocumentFacts {
  id: number;
  name: string;
  /** Its purpose, e.g. `incident`, `review`, `reference`. */
  resourceType: string;
  /** The plugin's identifier. */
  resourceId: string;
  weblink?: string;
}

/** A conversation or a group that its plugin created for an incident. */
export interface ResourceFacts {
  incident: IncidentFacts;
  /** The plugin's identifier. Absent where the incident's id is enough. */
  externalId?: string;
  weblink?: string;
}

export interface Message {
  /** One line: the subject of a mail, the first line of a chat message. */
  subject: string;
  /** Markdown. */
  text: string;
}

/** The place of a message in the course of the incident. */
export interface Place {
  /** When what it reports happened. It may be sent much later. */
  occurredAt?: string;
  /** Increases from message to message of a conversation. */
  sequence?: number;
}
