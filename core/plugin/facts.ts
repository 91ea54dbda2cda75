// What plugins are told. Times are RFC 3339 in UTC, addresses are canonical, ids are ours.

/** A record that somebody has given a name. */
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
  /** The address of its list. */
  email?: string;
}

/** What somebody is on call for. */
export interface ServiceFacts {
  id: number;
  name: string;
  /** What the plugin calls it; none where our id is enough. */
  externalId?: string;
}

export interface IncidentFacts {
  id: number;
  /** `INC-1` */
  name: string;
  title: string;
  description: string;
  status: "Active" | "Stable" | "Closed";
  /** What is Restricted is for its participants only: a plugin must not tell others. */
  visibility: "Open" | "Restricted";
  type: Named;
  /** Higher ranks are more urgent. */
  priority: Named & { rank: number };
  /** Terms that stand in its title or description. */
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
  /** What it is for, e.g. `incident`, `review`, `reference`. */
  resourceType: string;
  /** What the plugin calls it. */
  resourceId: string;
  weblink?: string;
}

/** A conversation or a group, as its plugin has made it for an incident. */
export interface ResourceFacts {
  incident: IncidentFacts;
  /** What the plugin calls it; none where the incident's id is enough. */
  externalId?: string;
  weblink?: string;
}

export interface Message {
  /** One line: the subject of a mail, the first line of a chat message. */
  subject: string;
  /** Markdown. */
  text: string;
}
