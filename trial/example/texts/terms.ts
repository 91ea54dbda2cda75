interface TermText {
  text: string;
  definition: string;
  /** A word that is everywhere only makes noise. */
  discoverable?: false;
  /** Written by a person here, and not in the glossary that term-sync reads. */
  own?: true;
}

export const termSource = "term-source";

export const terms: readonly TermText[] = [
  { text: "data loss", definition: "Something that was stored cannot be read any more, anywhere." },
  { text: "credential leak", definition: "A password, key or token that others may have seen." },
  { text: "pii export", definition: "Personal data on their way out, wanted or not." },
  { text: "leak", definition: "Something is where it should not be: a secret, or memory." },
  { text: "export", definition: "A copy for somebody outside, as a file." },
  { text: "error budget", definition: "How much may fail in a month before features have to wait." },
  { text: "failover", definition: "A replica takes over from its primary." },
  { text: "replica lag", definition: "How far a replica is behind its primary, in seconds." },
  { text: "rollback", definition: "Back to the release before." },
  { text: "canary", definition: "The first few servers of a release, watched before the rest follow." },
  { text: "circuit breaker", definition: "Stops calling what keeps failing, and tries again later." },
  { text: "connection pool", definition: "Database connections that requests share." },
  { text: "dead letter queue", definition: "Where messages go that nobody could handle." },
  { text: "backpressure", definition: "Telling the one in front to slow down." },
  { text: "cold start", definition: "The time until a fresh process is as fast as the others." },
  { text: "blast radius", definition: "What a failure takes with it." },
  { text: "feature flag", definition: "A switch that turns code on without a release." },
  { text: "TLS certificate", definition: "Proves to a browser that a server is who it says it is." },
  { text: "rate limit", definition: "How many requests one caller may send in a minute." },
  { text: "cache stampede", definition: "Everyone computes what has just fallen out of a cache." },
  { text: "split brain", definition: "Two primaries, each of which takes itself for the only one." },
  { text: "quorum", definition: "As many nodes as have to agree." },
  { text: "p99", definition: "What 99 of 100 requests are faster than." },
  { text: "retry storm", definition: "Clients that repeat what fails and thereby keep it failing." },
  { text: "deadlock", definition: "Two transactions, each waiting for what the other one holds." },
  { text: "autovacuum", definition: "PostgreSQL's own cleaning up after updates and deletes." },
  { text: "consumer lag", definition: "Messages that a reader of the event bus has yet to read." },
  { text: "schema drift", definition: "A database that is no longer what its revisions say." },
  { text: "idempotency key", definition: "Makes sure that a request that is sent twice is done once." },
  { text: "DNS", definition: "Turns names into addresses, and takes its time to forget them." },
  { text: "TTL", definition: "How long an answer may be remembered." },
  { text: "SLO", definition: "What we promise ourselves: 99.9 % of requests in a month are good." },
  { text: "point-in-time recovery", definition: "A backup and the log since then, replayed up to a moment." },
  { text: "backup", definition: "A copy that is no use until somebody has restored it." },
  { text: "CVE", definition: "The number under which a weakness is known." },
  { text: "privilege escalation", definition: "Doing more than one was allowed to." },
  { text: "phishing", definition: "A page or mail that pretends to be ours." },
  { text: "least privilege", definition: "Nobody may do more than their work needs." },
  { text: "secret rotation", definition: "A new key in place of the old one, everywhere." },
  { text: "egress", definition: "Traffic that leaves our networks." },
  { text: "game day", definition: "An exercise: something is broken on purpose, and people practise." },
  { text: "load shedding", definition: "Refusing some requests so that the others are answered." },
  { text: "double charge", definition: "A shop has paid twice for one parcel." },
  { text: "payout", definition: "Money on its way to a carrier." },
  { text: "ledger", definition: "All movements of money. What it says is what happened.", own: true },
  { text: "scan event", definition: "A depot has seen a parcel: which, where, when.", own: true },
  { text: "label", definition: "The sticker with the address and the barcode.", own: true },
  { text: "status page", definition: "Where shops look first when something is slow.", own: true },
  { text: "retention", definition: "How long something is kept before it is deleted.", own: true },
  { text: "error", definition: "Anything that is not as it should be.", discoverable: false, own: true },
];

/** Once in the glossary and gone since. */
export const goneTerm: TermText = {
  text: "war room",
  definition: "What we called an incident's conversation until last year.",
};
