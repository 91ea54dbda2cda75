import { describe, expect, test } from "bun:test";
import { testRevision } from "../../tests/support/database/revision.ts";
import type { Revision } from "./history.ts";
import { planDowngrade, planUpgrade } from "./plan.ts";
import type { Applied } from "./store.ts";

const a = testRevision("a1", [], "select 'a'");
const b = testRevision("b1", ["a1"], "select 'b'");
const c = testRevision("c1", ["b1"], "select 'c'");
const left = testRevision("left", ["a1"], "select 'l'");
const right = testRevision("right", ["a1"], "select 'r'");
const joined = testRevision("joined", ["left", "right"], "");
const diamond = [a, left, right, joined];

/** As if applied one second after another. */
function applied(...revisions: Revision[]): Applied[] {
  return revisions.map(({ id, checksum, down, manifest }, at) => ({
    ...{ id, checksum, down, manifest, parents: manifest.parents, state: "applied" as const },
    appliedAt: new Date(Date.UTC(2026, 0, 1, 0, 0, at)),
  }));
}

const ids = (list: readonly { id: string }[]) => list.map(({ id }) => id);
const up = (known: Revision[], done: Applied[], target?: string) => ids(planUpgrade(known, done, target));
const down = (known: Revision[], done: Applied[], target?: string) => ids(planDowngrade(known, done, target));

describe("upgrade", () => {
  test("goes to head, N further, or to a revision and all before it", () => {
    expect(up([c, a, b], [])).toEqual(["a1", "b1", "c1"]);
    expect(up([a, b, c], applied(a))).toEqual(["b1", "c1"]);
    expect(up([a, b, c], applied(a), "+1")).toEqual(["b1"]);
    expect(up([a, b, c], [], "b1")).toEqual(["a1", "b1"]);
    expect(up([a, b, c], [], "b")).toEqual(["a1", "b1"]);
    expect(up([a, b, c], applied(a, b, c))).toEqual([]);
    expect(up([a, b, c], applied(a, b, c), "a1")).toEqual([]);
    expect(up(diamond, applied(a), "right")).toEqual(["right"]);
  });

  test("an older revision than the newest applied one is not forgotten", () => {
    expect(up(diamond, applied(a, right))).toEqual(["left", "joined"]);
  });

  test("what is no target is named", () => {
    expect(() => up([a, b], [], "nowhere")).toThrow("There is no revision nowhere");
    expect(() => up([a, b], [], "+3")).toThrow("2 revisions are not applied");
    expect(() => up([a, b], [], "+0")).toThrow("not possible");
    for (const target of ["base", "-1"]) {
      expect(() => up([a, b], applied(a), target)).toThrow("back is svc database downgrade");
    }
    expect(() => up([testRevision("xa", [], ""), testRevision("xb", ["xa"], "")], [], "x")).toThrow("xa, xb");
  });

  test("several heads are refused, but not the way to one of them", () => {
    expect(() => up([a, left, right], [])).toThrow("2 heads: left, right. Join them: svc database merge");
    expect(() => up([a, left, right], [], "+1")).toThrow("2 heads");
    expect(up([a, left, right], [], "left")).toEqual(["a1", "left"]);
  });

  test("an edited revision is refused by name", () => {
    const edited = testRevision("a1", [], "select 'other'");
    expect(() => up([edited, b], applied(a))).toThrow("Revision a1 was edited");
  });

  test("a newer release's schema is fine if its revisions say so, and all of ours are there", () => {
    const compatible = testRevision("c1", ["b1"], "", "", { compatible: true });
    expect(up([a, b], applied(a, b, compatible))).toEqual([]);
    expect(() => up([a, b], applied(a, b, c))).toThrow("c1, which this release does not know");
    expect(() => up([a, b], applied(a, compatible))).toThrow("c1, which this release does not know");
  });

  test("a database from before the first revision: says how to begin anew", () => {
    expect(() => up([a, b], applied(testRevision("0", [], "")))).toThrow("made by a version before a1");
  });
});

describe("downgrade", () => {
  test("goes back one, N, to base, or to what stays", () => {
    const done = applied(a, b, c);
    expect(down([a, b, c], done)).toEqual(["c1"]);
    expect(down([a, b, c], done, "-2")).toEqual(["c1", "b1"]);
    expect(down([a, b, c], done, "base")).toEqual(["c1", "b1", "a1"]);
    expect(down([a, b, c], done, "a1")).toEqual(["c1", "b1"]);
    expect(down([a, b, c], done, "c1")).toEqual([]);
  });

  test("of two lines takes back what was applied last, and never a parent before its child", () => {
    expect(down(diamond, applied(a, right, left))).toEqual(["left"]);
    expect(down(diamond, applied(a, left, right))).toEqual(["right"]);
    expect(down(diamond, applied(a, left, right, joined), "-2")).toEqual(["joined", "right"]);
    expect(down(diamond, applied(a, left, right, joined), "left")).toEqual(["joined"]);
  });

  test("takes back what only the database knows", () => {
    expect(down([a], applied(a, b, c))).toEqual(["c1"]);
    expect(down([a], applied(a, b, c), "a1")).toEqual(["c1", "b1"]);
  });

  test("more than there is, and what is not applied, is refused", () => {
    expect(() => down([a], [])).toThrow("no revision is applied");
    expect(() => down([a, b], applied(a), "-2")).toThrow("only 1 applied");
    expect(() => down([a, b], applied(a), "b1")).toThrow("b1 is not applied");
    expect(() => down([a], applied(a), "-0")).toThrow("invalid count: -0");
    for (const target of ["head", "+1"]) {
      expect(() => down([a], applied(a), target)).toThrow("on is svc database upgrade");
    }
    expect(down([a], [], "base")).toEqual([]);
  });
});
