import { expect, test } from "bun:test";
import { parseExposition, valuesOf } from "../../tests/support/http/exposition.ts";
import { joinMetrics } from "./join.ts";

const one = (count: number, more = "") => `# HELP a_total what it is
# UNIT a_total s
# TYPE a_total counter
a_total{x="{}, \\"y\\""} ${count}
a_total ${count}
# HELP b what b is
# TYPE b gauge
b 1
${more}`;

test("lists each metric once, each series with its worker's number, and which workers are down", () => {
  const joined = joinMetrics([one(1), undefined, one(3, '# HELP c what c is\n# TYPE c gauge\nc{x="1"} 2\n')]);
  const families = parseExposition(joined);
  expect([...families.keys()]).toEqual(["svc_worker_up", "a_total", "b", "c"]);
  expect(valuesOf(families, "svc_worker_up")).toEqual([1, 0, 1]);
  expect(families.get("a_total")?.samples).toEqual([
    { name: "a_total", labels: { worker: "0", x: '{}, "y"' }, value: 1 },
    { name: "a_total", labels: { worker: "0" }, value: 1 },
    { name: "a_total", labels: { worker: "2", x: '{}, "y"' }, value: 3 },
    { name: "a_total", labels: { worker: "2" }, value: 3 },
  ]);
  expect(valuesOf(families, "c", { worker: "2" })).toEqual([2]);
  expect(joined).toContain("# HELP a_total what it is\n# UNIT a_total s\n# TYPE a_total counter\na_total{");
});

test("without any answer, reports only that all workers are down", () => {
  const families = parseExposition(joinMetrics([undefined, undefined]));
  expect([...families.keys()]).toEqual(["svc_worker_up"]);
  expect(valuesOf(families, "svc_worker_up")).toEqual([0, 0]);
});
