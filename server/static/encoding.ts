/** What a file is called that was compressed when the front end was built, by how; the smallest comes first. */
export const suffixes = { br: ".br", zstd: ".zst", gzip: ".gz" } as const;

export type Coding = keyof typeof suffixes;

const codings = Object.keys(suffixes) as Coding[];

/** The codings that `Accept-Encoding` allows (RFC 9110, 12.5.3), those with the highest weight first. */
export function acceptedCodings(header: string | null): Coding[] {
  const weights = new Map<string, number>();
  for (const entry of (header ?? "").toLowerCase().split(",")) {
    const [, name, weight = "1"] =
      entry.match(/^\s*([a-z0-9*-]+)\s*(?:;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?\s*$/) ?? [];
    if (name !== undefined) weights.set(name === "x-gzip" ? "gzip" : name, Number(weight));
  }
  const weightOf = (name: string) => weights.get(name) ?? weights.get("*") ?? 0;
  // No coding at all is as good as any other, unless it is given a weight of its own.
  const plain = weights.get("identity") ?? 0;
  return codings
    .filter((name) => weightOf(name) > 0 && weightOf(name) >= plain)
    .sort((a, b) => weightOf(b) - weightOf(a));
}
