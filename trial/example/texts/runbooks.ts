interface ReferenceText {
  name: string;
  description: string;
  /** What it is proposed for. */
  types: string[];
  priorities: string[];
  terms: string[];
  /** Markdown; without one it is only a link. */
  content?: string;
  link?: string;
}

export const references: readonly ReferenceText[] = [
  {
    name: "Runbook: fail over to the other region",
    description: "What to look at before, what to press, and how to come back.",
    types: [],
    priorities: [],
    terms: ["failover", "replica lag", "quorum"],
    content: `# Fail over to the other region

The commander decides, nobody else. A failover while the replica is behind is data loss.

1. Look at the replica lag. Below ten seconds: go on. Above: ask Data on call first.
2. Freeze releases, and say so in the release channel.
3. Press *Fail over* on the region's page and wait for the quorum of the other region.
4. Lower the TTL of the DNS names to 30 s if that has not been done.
5. Watch p99 and the error rate for ten minutes.

Never let both sides write: a split brain costs more than an hour of being down.
`,
  },
  {
    name: "Runbook: a full connection pool",
    description: "Requests wait although the database has nothing to do.",
    types: [],
    priorities: [],
    terms: ["connection pool", "deadlock", "autovacuum"],
    content: `# A full connection pool

Symptoms: p99 rises at once, the database is idle, requests wait for a connection.

1. Look for transactions that are older than five minutes, and for a deadlock.
2. End the oldest one, if it is a report. If it is a payment, ask Payments on call.
3. Look whether autovacuum was kept from its work, and start it by hand.
4. More connections are no remedy: they move the queue into the database.
`,
  },
  {
    name: "Runbook: consumer lag",
    description: "A service reads the event bus more slowly than it is written.",
    types: [],
    priorities: [],
    terms: ["consumer lag", "dead letter queue", "backpressure", "scan event"],
    content: `# Consumer lag

1. All partitions or one? One: a message cannot be read. Put it into the dead letter queue.
2. All of them: is the service slow, or is there more to read? Look at the rate of each scan event type.
3. Add consumers, up to the number of partitions.
4. If depots send too fast, turn on backpressure: they keep scan events for three days.
`,
  },
  {
    name: "Runbook: a release has to go back",
    description: "Rollback of a service, with and without a new schema.",
    types: ["Availability"],
    priorities: [],
    terms: ["rollback", "canary", "feature flag", "schema drift"],
    content: `# A release has to go back

A rollback is never wrong. Do it first, and look for the cause afterwards.

1. Is it behind a feature flag? Turn it off, that is enough.
2. Otherwise roll back the canary, then the others two by two.
3. If the schema has changed, look for schema drift before the old release starts.
4. Tell the release channel, so that nobody releases it again.
`,
  },
  {
    name: "Runbook: too much traffic",
    description: "Rate limits, load shedding, and how to calm clients that repeat themselves.",
    types: ["Availability"],
    priorities: ["High"],
    terms: ["retry storm", "load shedding", "rate limit", "circuit breaker", "cache stampede"],
    content: `# Too much traffic

1. Who sends it? One shop: give it a rate limit of its own, and call it.
2. Everybody, in waves: a retry storm. Start load shedding at half, and lower it by itself.
3. Everybody, after a cache was emptied: a cache stampede. Fill the cache region by region.
4. Open the circuit breaker to whatever is slowest, so that the rest can answer.
`,
  },
  {
    name: "Runbook: certificates",
    description: "What to do when a TLS certificate has expired, or is about to.",
    types: [],
    priorities: [],
    terms: ["TLS certificate", "DNS"],
    content: `# Certificates

1. Which name, and since when? The edge's dashboard lists every TLS certificate with its end.
2. Renewal needs a DNS record that begins with an underscore. Is it there?
3. Renew by hand, once. More than five attempts an hour are refused.
4. Old scanners need a restart to see a new certificate: call the depots.
`,
  },
  {
    name: "Runbook: bring data back",
    description: "From a backup, from the log, or from those who have a copy.",
    types: ["Data Loss"],
    priorities: [],
    terms: ["data loss", "backup", "point-in-time recovery", "retention"],
    content: `# Bring data back

Stop what is still deleting. Then take your time: haste has cost more rows than any bug.

1. Write down when it began, to the minute.
2. Start a point-in-time recovery to the minute before, **beside** production.
3. Compare, and copy what is missing. Never the other way round.
4. Older than the retention of the log: the newest backup, then depots and shops, who keep copies of their own.
`,
  },
  {
    name: "Runbook: a secret has leaked",
    description: "A key, token or password may have been seen by somebody.",
    types: ["Security"],
    priorities: [],
    terms: ["credential leak", "leak", "secret rotation", "least privilege"],
    content: `# A secret has leaked

It counts as used until the logs say that it was not.

1. Revoke it. Do not wait for the one who uses it: a short outage is the smaller evil.
2. Start the secret rotation for everything that the same person or server had.
3. Look into the logs: from when to when could it be used, and was it?
4. Afterwards, and not before: did it need all of its rights? Least privilege would have made this a small leak.
`,
  },
  {
    name: "Runbook: personal data outside",
    description: "Whom to ask, whom to tell, and by when.",
    types: ["Security"],
    priorities: [],
    terms: ["pii export", "export", "egress"],
    content: `# Personal data outside

The clock of 72 hours starts when we know, not when we are sure.

1. Make the incident Restricted, and ask the data protection officer into it.
2. Cut egress of whatever sent the data, and keep its logs.
3. Write down whose data, which, how many. An export of ours has a list of its columns beside it.
4. Whether a pii export has to be told to the authority is decided by Legal.
`,
  },
  {
    name: "Runbook: somebody reports a weakness",
    description: "How to answer researchers, and how fast what has to be done.",
    types: ["Vulnerability"],
    priorities: [],
    terms: ["CVE", "privilege escalation", "phishing"],
    content: `# Somebody reports a weakness

1. Thank them within a day, by name, and tell them what happens next.
2. Can it be used from outside? Then it is High, whatever the CVE says.
3. Privilege escalation between shops: ask Data on call for the logs of the last year.
4. Agree with them on a day to publish.
`,
  },
  {
    name: "Runbook: money that is wrong",
    description: "Charged twice, booked never, paid out too late.",
    types: ["Other"],
    priorities: [],
    terms: ["double charge", "payout", "ledger", "idempotency key"],
    content: `# Money that is wrong

Nothing in the ledger is ever changed. Mistakes are made good by a second entry.

1. Stop the job, so that it does not become more.
2. A double charge: find the two idempotency keys, and refund the second one.
3. A payout that is late: the bank's cut-off is at 16:00, and there is a telephone number for 15:55.
4. Shops hear it from us, before they ask.
`,
  },
  {
    name: "How we work in an incident",
    description: "Who does what, in one page. Read it before your first turn on call.",
    types: ["Availability", "Data Loss", "Security", "Vulnerability", "Simulation", "Other"],
    priorities: [],
    terms: ["status page", "game day", "blast radius"],
    content: `# How we work in an incident

- The **commander** decides and does nothing else. Command is handed over aloud.
- The **scribe** writes down what happened and when. The **liaison** talks to everybody outside.
- Everybody else says what they are about to do *before* they do it.

Keep the blast radius small: one change at a time. The status page is updated at least as often as the report is due.
A game day is an incident like any other, except that nobody has to apologise.
`,
  },
  {
    name: "Depot telephone list",
    description: "All forty depots, with the number of whoever opens in the morning.",
    types: [],
    priorities: ["High"],
    terms: ["scan event", "label"],
    link: "https://wiki.example.com/depots/telephone",
  },
];

/** What the document of a new incident is made from. */
export const templates: readonly { name: string; description: string; types: string[]; content: string }[] = [
  {
    name: "Template: incident",
    description: "For everything but security.",
    types: ["Availability", "Data Loss", "Simulation", "Other"],
    content: `# {{name}}: {{title}}

{{description}}

Type {{type}}, priority {{priority}}. Reported by {{reporter}} at {{reported_at}}. Commander: {{commander}}.

## What we know

## To do

- [ ] Tell Support what to answer
- [ ] Keep the logs of the first hour
`,
  },
  {
    name: "Template: security incident",
    description: "For security and vulnerabilities. Everything in it is for its participants only.",
    types: ["Security", "Vulnerability"],
    content: `# {{name}}: {{title}}

*Do not talk about this outside of its participants.*

{{description}}

Type {{type}}, priority {{priority}}. Reported by {{reporter}} at {{reported_at}}. Commander: {{commander}}.

## What we know

## To do

- [ ] Keep the access logs where nobody can change them
- [ ] Ask Legal whether somebody has to be told
`,
  },
];
