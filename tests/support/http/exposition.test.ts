import { expect, test } from "bun:test";
import { parseExposition, valuesOf } from "./exposition.ts";

const head = "# HELP a_total what it is\n# TYPE a_total counter\n";
const histogram = (inf: number) =>
  `# HELP h what it is\n# TYPE h histogram\nh_bucket{le="1"} 2\nh_bucket{le="+Inf"} ${inf}\nh_sum 1.5\nh_count 3\n`;

test("parses well-formed text", () => {
  const families = parseExposition(`${head}a_total{x="q\\"\\\\\\n",y=""} 1e+3\na_total 2\n${histogram(3)}`);
  expect(families.get("a_total")?.samples[0]?.labels).toEqual({ x: 'q"\\\n', y: "" });
  expect(valuesOf(families, "a_total")).toEqual([1000, 2]);
  expect(valuesOf(families, "h_bucket", { le: "1" })).toEqual([2]);
});

test.each([
  ["text without a final newline", "# TYPE a gauge\na 1"],
  ["a sample without a type", "a 1\n"],
  ["an invalid name", "# TYPE 1a gauge\n1a 1\n"],
  ["a label without quotes", "# TYPE a gauge\na{b=c} 1\n"],
  ["an invalid escape", '# TYPE a gauge\na{b="\\x"} 1\n'],
  ["a duplicate label", '# TYPE a gauge\na{b="1",b="2"} 1\n'],
  ["empty braces", "# TYPE a gauge\na{} 1\n"],
  ["an invalid value", "# TYPE a gauge\na one\n"],
  ["a duplicate series", "# TYPE a gauge\na 1\na 1\n"],
  ["a duplicate type", "# TYPE a gauge\na 1\n# TYPE a gauge\n"],
  ["a sample outside its group", "# TYPE a gauge\na 1\n# TYPE b gauge\na 2\n"],
  ["a counter without _total", "# TYPE a counter\na 1\n"],
  ["a counter below zero", `${head}a_total -1\n`],
  ["a histogram that does not add up", histogram(4)],
  ["a gauge named like a histogram's count", "# HELP a_count b\n# TYPE a_count gauge\na_count 1\n"],
  ["a gauge named like a counter", "# HELP a_total b\n# TYPE a_total gauge\na_total 1\n"],
  ["a metric in milliseconds", "# HELP a_ms b\n# TYPE a_ms gauge\na_ms 1\n"],
  ["a metric without HELP", "# TYPE a gauge\na 1\n"],
  ["a histogram with decreasing buckets", histogram(1)],
])("%s is refused", (_, text) => {
  expect(() => parseExposition(text)).toThrow();
});
