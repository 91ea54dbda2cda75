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
    id,
    checksum,
    down,
    manifest,
    parents: manifest.parents,
    state: "applied" as const,
    appliedAt: new Date(Date.UTC(2026, 0, 1, 0, 0, at)),
  }));
}

const ids = (list: readonly { id: string }[]) => list.map(({ id }) => id);
const up = (known: Revision[], done: Applied[], target?: string) => ids(planUpgrade(known, done, target));
const down = (known: Revision[], done: Applied[], target?: string) => ids(planDowngrade(known, done, target));

describe("upgrade", () => {
  test("goes to head, N further, or to a revision and all its ancestors", () => {
    expect(up([c, a, b], [])).toEqual(["a1", "b1", "c1"]);
    expect(up([a, b, c], applied(a))).toEqual(["b1", "c1"]);
    expect(up([a, b, c], applied(a), "+1")).toEqual(["b1"]);
    expect(up([a, b, c], [], "b1")).toEqual(["a1", "b1"]);
    expect(up([a, b, c], [], "b")).toEqual(["a1", "b1"]);
    expect(up([a, b, c], applied(a, b, c))).toEqual([]);
    expect(up([a, b, c], applied(a, b, c), "a1")).toEqual([]);
    expect(up(diamond, applied(a), "right")).toEqual(["right"]);
  });

  test("does not skip a revision older than the newest applied one", () => {
    expect(up(diamond, applied(a, right))).toEqual(["left", "joined"]);
  });

  test("rejects an invalid target, naming it", () => {
    expect(() => up([a, b], [], "nowhere")).toThrow("There is no revision nowhere");
    expect(() => up([a, b], [], "+3")).toThrow("2 revisions are not applied");
    expect(() => up([a, b], [], "+0")).toThrow("not possible");
    for (const target of ["base", "-1"]) {
      expect(() => up([a, b], applied(a), target)).toThrow("to go back, run svc database downgrade");
    }
    expect(() => up([testRevision("xa", [], ""), testRevision("xb", ["xa"], "")], [], "x")).toThrow("xa, xb");
  });

  test("refuses several heads, but not the way to one of them", () => {
    expect(() => up([a, left, right], [])).toThrow("2 heads: left, right. Join them: svc database merge");
    expect(() => up([a, left, right], [], "+1")).toThrow("2 heads");
    expect(up([a, left, right], [], "left")).toEqual(["a1", "left"]);
  });

  test("refuses an edited revision, naming it", () => {
    const edited = testRevision("a1", [], "select 'other'");
    expect(() => up([edited, b], applied(a))).toThrow("Revision a1 was edited");
  });

  test("accepts a newer release's schema if it is compatible and includes all our revisions", () => {
    const compatible = testRevision("c1", ["b1"], "", "", { compatible: true });
    expect(up([a, b], applied(a, b, compatible))).toEqual([]);
    expect(() => up([a, b], applied(a, b, c))).toThrow("c1, which this release does not know");
    expect(() => up([a, b], applied(a, compatible))).toThrow("c1, which this release does not know");
  });
});

describe("downgrade", () => {
  test("goes back by one, by N, to base, or to a revision that stays", () => {
    const done = applied(a, b, c);
    expect(down([a, b, c], done)).toEqual(["c1"]);
    expect(down([a, b, c], done, "-2")).toEqual(["c1", "b1"]);
    expect(down([a, b, c], done, "base")).toEqual(["c1", "b1", "a1"]);
    expect(down([a, b, c], done, "a1")).toEqual(["c1", "b1"]);
    expect(down([a, b, c], done, "c1")).toEqual([]);
  });

  test("with two lines, reverts the newest first, and never a parent before its child", () => {
    expect(down(diamond, applied(a, right, left))).toEqual(["left"]);
    expect(down(diamond, applied(a, left, right))).toEqual(["right"]);
    expect(down(diamond, applied(a, left, right, joined), "-2")).toEqual(["joined", "right"]);
    expect(down(diamond, applied(a, left, right, joined), "left")).toEqual(["joined"]);
  });

  test("reverts revisions known only to the database", () => {
    expect(down([a], applied(a, b, c))).toEqual(["c1"]);
    expect(down([a], applied(a, b, c), "a1")).toEqual(["c1", "b1"]);
  });

  test("rejects more steps than are applied, and a revision that is not applied", () => {
    expect(() => down([a], [])).toThrow("no revision is applied");
    expect(() => down([a, b], applied(a), "-2")).toThrow("only 1 applied");
    expect(() => down([a, b], applied(a), "b1")).toThrow("b1 is not applied");
    expect(() => down([a], applied(a), "-0")).toThrow("invalid count: -0");
    for (const target of ["head", "+1"]) {
      expect(() => down([a], applied(a), target)).toThrow("to go forward, run svc database upgrade");
    }
    expect(down([a], [], "base")).toEqual([]);
  });
});
