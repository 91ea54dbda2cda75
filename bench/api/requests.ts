import { randomOf } from "../random.ts";
import { requestText } from "../wrk.ts";
import { isRestricted, type Size } from "./data.ts";
import { retired, vocabulary } from "./words.ts";

/** One kind of request, and how to create it for the people who send it. */
export interface Kind {
  name: "list" | "detail" | "search" | "create";
  requests(address: string, headersOf: (user: number) => Record<string, string>): string[];
}

const people = 50;
const each = (count: number) => Array.from({ length: count }, (_, at) => at);

const reading = (name: Kind["name"], paths: readonly string[]): Kind => ({
  name,
  requests: (address, headersOf) =>
    paths.map((path, at) => requestText("GET", `${address}${path}`, headersOf(at % people))),
});

/** The first page of fifty. */
export const lists = reading(
  "list",
  each(people).map(() => "/incidents/"),
);

/** Open incidents of all years; most people cannot see the others. */
export const details = ({ incidents }: Size): Kind => {
  const random = randomOf("detail");
  const ids = each(2000).map(() => 1 + Math.floor(random.between(0, incidents - 1)));
  return reading(
    "detail",
    ids.map((id) => `/incidents/${isRestricted(id) ? id + 1 : id}`),
  );
};

/** Search terms, classified by how many words of the vocabulary are more frequent. */
export const words = {
  common: (at: number) => vocabulary[at % 10]!,
  frequent: (at: number) => vocabulary[20 + (at % 100)]!,
  seldom: (at: number) => vocabulary[200 + ((at * 7) % 1000)]!,
  rare: (at: number) => vocabulary[2000 + ((at * 37) % 15_000)]!,
  two: (at: number) => `${vocabulary[at % 150]} ${vocabulary[20 + ((at * 13) % 400)]}`,
  old: () => retired,
  unknown: (at: number) => `nothing${at}`,
} satisfies Record<string, (at: number) => string>;

/** Equal shares of each kind of words, except for the one only in old documents, which is one search in fifty. */
export const searches = reading(
  "search",
  each(600).map((at) => {
    const { old, ...others } = words;
    const kinds = Object.values(others);
    const kind = at % 50 === 49 ? old : kinds[at % kinds.length]!;
    return `/search?q=${encodeURIComponent(kind(at))}`;
  }),
);

export const creates: Kind = {
  name: "create",
  requests: (address, headersOf) =>
    each(people).map((user) => {
      const body = JSON.stringify({
        title: "Checkout answers slowly",
        description: "p99 of the payment service is above ten seconds",
        incident_type_id: 1,
        incident_priority_id: 2,
      });
      const headers = {
        ...headersOf(user),
        "content-type": "application/json",
        "content-length": String(body.length),
      };
      return requestText("POST", `${address}/incidents/`, headers, body);
    }),
};
