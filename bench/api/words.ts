import { randomOf } from "../random.ts";

// Words with a natural frequency: the one of rank n occurs once where the first occurs n times (Zipf). So one word is
// in nearly every document and most are in hardly any; those in between are the most work for a search.

const topics =
  `error service database latency request timeout deploy customer payment queue cache node cluster region
  alert traffic release certificate memory disk storage backup replica network gateway proxy token session login
  password account invoice order checkout shipment label parcel depot scanner driver route billing refund report
  dashboard metric trace log retry failover rollback migration index lock deadlock vacuum partition shard topic
  consumer producer broker message event webhook throttle quota limit budget capacity load balancer firewall packet
  router switch fibre carrier outage degraded recovery restart crash kernel driver upgrade patch vendor contract
  supplier warehouse inventory forecast pricing discount voucher loyalty recommendation search catalogue image video
  upload download export import batch schedule worker pipeline build test canary feature flag experiment cohort
  privacy audit compliance breach phishing malware scan secret rotation key vault policy role permission group
  directory federation mail inbox bounce template notification pager escalation handover commander liaison scribe
  timeline postmortem action owner deadline review runbook checklist drill simulation`
    .split(/\s+/)
    .filter((word, at, all) => all.indexOf(word) === at);

const syllables = [
  "ka",
  "mo",
  "ri",
  "te",
  "lu",
  "va",
  "sen",
  "dor",
  "pi",
  "nax",
  "bo",
  "gel",
  "tu",
  "mir",
  "zo",
  "fen",
];

/** Names of services and hosts, which are most of the words in use. */
function coined(count: number): string[] {
  return Array.from({ length: count }, (_, at) =>
    [at >> 12, at >> 8, at >> 4, at].map((part) => syllables[part & 15]).join(""),
  );
}

/** All words, the most frequent first. */
export const vocabulary: readonly string[] = [...topics, ...coined(20_000)];

/** A word that occurs only in the oldest twentieth of the documents. */
export const retired = "mainframe";

export interface Writer {
  words(count: number): string;
  /** With full stops. */
  text(count: number): string;
}

export function writerOf(seed: string): Writer {
  const random = randomOf(seed);
  const range = Math.log(vocabulary.length + 1);
  const word = () => vocabulary[Math.floor(Math.exp(random.between(0, range))) - 1] ?? vocabulary[0]!;
  const words = (count: number) => Array.from({ length: count }, word).join(" ");
  return {
    words,
    text(count) {
      const sentences: string[] = [];
      for (let left = count; left > 0; left -= 8) sentences.push(words(Math.min(left, 8)));
      return `${sentences.join(". ")}.`;
    },
  };
}
