/** The teams of an imaginary company, Brindlewick, that carries parcels for small shops. */
export type TeamKey = "platform" | "payments" | "parcels" | "data" | "security" | "support";

interface TeamText {
  name: string;
  description: string;
  /** Who works there, by first name; those who are on call take turns in this order. */
  people: string[];
  onCall: { name: string; description: string; people: string[] };
  /** Incident types and priorities for which the team is proposed, and words of descriptions. */
  types: string[];
  priorities: string[];
  terms: string[];
}

export const teams: Readonly<Record<TeamKey, TeamText>> = {
  platform: {
    name: "Platform",
    description: "Clusters, networks, the event bus and everything that the other teams run on.",
    people: ["alice", "dave", "erin", "kofi", "victor"],
    onCall: {
      name: "Platform on call",
      description: "Day and night. Answers within five minutes.",
      people: ["alice", "dave", "erin", "kofi"],
    },
    types: ["Availability"],
    priorities: [],
    terms: ["failover", "quorum", "retry storm"],
  },
  payments: {
    name: "Payments",
    description: "Takes money from shops, pays carriers, and keeps the ledger straight.",
    people: ["bob", "frank", "uma", "xavier"],
    onCall: {
      name: "Payments on call",
      description: "Day and night, with a second person at the end of the month.",
      people: ["bob", "frank", "uma"],
    },
    types: [],
    priorities: [],
    terms: ["double charge", "ledger", "payout"],
  },
  parcels: {
    name: "Parcels",
    description: "Labels, routes, tracking: what happens to a parcel from the shop to the door.",
    people: ["carol", "grace", "liam", "zoe", "quentin"],
    onCall: {
      name: "Parcels on call",
      description: "From five in the morning, when the depots open, until the last van is back.",
      people: ["carol", "grace", "liam", "zoe"],
    },
    types: [],
    priorities: [],
    terms: ["label", "scan event"],
  },
  data: {
    name: "Data",
    description: "Databases, backups and the warehouse that reports are made from.",
    people: ["heidi", "ivan", "nadia", "rupert"],
    onCall: {
      name: "Data on call",
      description: "Databases and backups, day and night. The warehouse in office hours.",
      people: ["heidi", "ivan", "nadia"],
    },
    types: ["Data Loss"],
    priorities: [],
    terms: ["data loss", "backup", "replica lag"],
  },
  security: {
    name: "Security",
    description: "Who may do what, and what to do when somebody did more.",
    people: ["sybil", "trent", "mallory", "olivia"],
    onCall: {
      name: "Security on call",
      description: "Day and night. When in doubt, call: nobody minds a false alarm.",
      people: ["sybil", "trent", "mallory"],
    },
    types: ["Security", "Vulnerability"],
    priorities: [],
    terms: ["credential leak", "phishing", "pii export"],
  },
  support: {
    name: "Support",
    description: "Talks to shops and their customers, and is often the first to know.",
    people: ["judy", "peggy", "wendy", "yasmin"],
    onCall: {
      name: "Support duty",
      description: "Keeps the status page and the answers to customers in step with what is known.",
      people: ["judy", "peggy", "wendy"],
    },
    types: ["Other"],
    priorities: ["High"],
    terms: ["status page"],
  },
};

/** By first name, which is also their address at example.com. */
export const people: Readonly<Record<string, string>> = {
  alice: "Alice Adams",
  bob: "Bob Brown",
  carol: "Carol Clark",
  dave: "Dave Dunn",
  erin: "Erin Ellis",
  frank: "Frank Foster",
  grace: "Grace Gray",
  heidi: "Heidi Huber",
  ivan: "Ivan Ionescu",
  judy: "Judy Jones",
  kofi: "Kofi Kwarteng",
  liam: "Liam Lowe",
  mallory: "Mallory Moss",
  nadia: "Nadia Novak",
  olivia: "Olivia Ortiz",
  peggy: "Peggy Park",
  quentin: "Quentin Quick",
  rupert: "Rupert Reed",
  sybil: "Sybil Stone",
  trent: "Trent Tanaka",
  uma: "Uma Usman",
  victor: "Victor Vance",
  wendy: "Wendy Wolf",
  xavier: "Xavier Ximenes",
  yasmin: "Yasmin Yilmaz",
  zoe: "Zoe Zimmer",
};

/** Who is proposed for what, beside their team. */
export const experts: readonly { person: string; types: string[]; priorities: string[]; terms: string[] }[] =
  [
    { person: "heidi", types: [], priorities: [], terms: ["replica lag", "point-in-time recovery"] },
    { person: "sybil", types: ["Security"], priorities: ["High"], terms: ["credential leak", "leak"] },
    { person: "kofi", types: [], priorities: [], terms: ["TLS certificate", "DNS"] },
    { person: "bob", types: [], priorities: [], terms: ["double charge", "idempotency key"] },
    { person: "victor", types: ["Simulation"], priorities: [], terms: ["game day"] },
  ];

/** Whose turn on call it is to command, by type of incident. */
export const calledTeams: Readonly<Record<string, TeamKey>> = {
  Availability: "platform",
  "Data Loss": "data",
  Security: "security",
  Vulnerability: "security",
  Simulation: "platform",
  Other: "support",
};
