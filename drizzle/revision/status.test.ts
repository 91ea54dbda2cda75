import { expect, test } from "bun:test";
import { testRevision } from "../../tests/support/database/revision.ts";
import type { Revision } from "./history.ts";
import { assertServable, compareRevisions } from "./status.ts";
import type { Applied, State } from "./store.ts";

const a = testRevision("a", [], "");
const b = testRevision("b", ["a"], "");
const compatible = testRevision("c", ["b"], "", "", { compatible: true });
const breaking = testRevision("c", ["b"], "");
const compatibleB = testRevision("b", ["a"], "", "", { compatible: true });
const aside = testRevision("x", ["a"], "");
const aside2 = testRevision("x", ["a"], "", "", { compatible: true });

function row({ id, checksum, down, manifest }: Revision, state: State = "applied"): Applied {
  return { id, checksum, down, manifest, parents: manifest.parents, state, appliedAt: new Date(0) };
}

test.each([
  ["exactly the schema of this release", [a, b], [row(a), row(b)], "ok"],
  ["an empty database", [a, b], [], "behind"],
  ["a missing revision", [a, b], [row(a)], "behind"],
  ["a newer release's compatible revision", [a, b], [row(a), row(b), row(compatible)], "ahead"],
  ["a newer release's incompatible revision", [a, b], [row(a), row(b), row(breaking)], "newer"],
  [
    "a newer release's compatible revision while ours are missing",
    [a, b],
    [row(a), row(compatible)],
    "behind",
  ],
  ["two unmerged lines", [a, b, aside], [row(a), row(b), row(aside)], "heads"],
  ["two lines, one of them not ours", [a, b], [row(a), row(b), row(aside)], "newer"],
  ["two lines, one of them not ours but compatible", [a, b], [row(a), row(b), row(aside2)], "heads"],
  ["a revision whose end is unknown", [a, b], [row(a), row(b, "applying")], "behind"],
  ["a revision that is being reverted", [a, b], [row(a), row(b, "reverting")], "behind"],
  ["a newer release's index being built", [a], [row(a), row(compatibleB, "applying")], "ahead"],
  ["a newer release's change in progress", [a], [row(a), row(b, "applying")], "newer"],
  ["a newer release's revision being reverted", [a], [row(a), row(b, "reverting")], "ok"],
  [
    "a newer release's incompatible revision while ours are missing",
    [a, b],
    [row(a), row(breaking)],
    "newer",
  ],
] as const)("%s", (_, known, applied, expected) => {
  const status = compareRevisions(known, applied);
  expect(status.state).toBe(expected);
  const serve = () => assertServable(status);
  if (expected === "ok" || expected === "ahead") expect(serve).not.toThrow();
  else expect(serve).toThrow(/svc database (upgrade|downgrade)/);
});

test("names the current revision and the required one", () => {
  expect(() => assertServable(compareRevisions([a, b], [row(a)]))).toThrow(
    "it is at a, this release needs b",
  );
  expect(() => assertServable(compareRevisions([a, b], [row(a), row(b), row(aside2)]))).toThrow(
    "several heads: b, x",
  );
});
