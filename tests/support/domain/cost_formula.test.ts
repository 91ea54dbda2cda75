import { describe, expect, test } from "bun:test";
import { multipliers as defaultMultipliers, formula as defaults } from "../../../core/populate/defaults.ts";
import { costOf, type Formula, type RoleInterval } from "./cost_formula.ts";

const formula: Formula = {
  ...defaults,
  multipliers: Object.fromEntries(defaultMultipliers.map(({ role, multiplier }) => [role, multiplier])),
};
const start = new Date("2026-12-01T12:00:00.000Z");
const at = (hours: number) => new Date(start.getTime() + hours * 3_600_000);
const role = (
  person: number,
  name: RoleInterval["role"],
  from = 0,
  to: number | null = null,
): RoleInterval => ({ person, role: name, assumedAt: at(from), renouncedAt: to === null ? null : at(to) });

/** The cost while Active after this many hours, and when Stable after this many. */
const costs = (roles: RoleInterval[], hours: number, participants = roles.length) => [
  costOf({ roles, participants, stableAt: null, now: at(hours) }, formula).cost,
  costOf({ roles, participants, stableAt: at(hours), now: at(hours + 1000) }, formula).cost,
];

describe("reference values without and with review", () => {
  test("one commander, 2 h", () => expect(costs([role(1, "commander")], 2)).toEqual([626, 1096]));
  test("commander, reporter and two participants, 2 h each", () => {
    const roles = [role(1, "commander"), role(2, "reporter"), role(3, "participant"), role(4, "participant")];
    expect(costs(roles, 2)).toEqual([1565, 2504]);
  });
  test("one commander, 30 h", () => expect(costs([role(1, "commander")], 30)).toEqual([4382, 4852]));
});

describe("a role counts", () => {
  const seconds = (roles: RoleInterval[], hours = 10, stable = false) =>
    costOf({ roles, participants: 1, stableAt: stable ? at(hours) : null, now: at(hours) }, formula).seconds;
  const h = 3600;

  test.each([
    ["until it was renounced", [role(1, "commander", 1, 3)], 2 * h],
    ["not before it begins", [role(1, "commander", 3, 3)], 0],
    ["not if it was renounced before it was assumed", [role(1, "commander", 3, 2)], 0],
    ["not as an observer", [role(1, "observer")], 0],
    [
      "once per person, as the role with the highest weight",
      [role(1, "reporter"), role(1, "commander", 2, 4)],
      6 * h,
    ],
    ["for each person", [role(1, "reporter"), role(2, "reporter")], 10 * h],
    ["once if two have equal weight", [role(1, "reporter"), role(1, "participant", 5)], 5 * h],
  ] as [string, RoleInterval[], number][])("%s", (_, roles, expected) =>
    expect(seconds(roles)).toBe(expected),
  );

  test("until the incident was stable, and not beyond", () => {
    expect(seconds([role(1, "commander", 0, 20)], 10, true)).toBe(10 * h);
    expect(seconds([role(1, "commander", 11)], 10, true)).toBe(0);
  });

  test("each hour of the first day, and then 8 hours per day", () => {
    expect([24, 24.001, 25, 47.5, 48, 49].map((hours) => seconds([role(1, "commander")], hours) / h)).toEqual(
      [24, 9, 9, 32, 16, 17],
    );
  });
});

test("without people only the review costs anything", () => {
  expect(costs([], 5)).toEqual([0, 313]);
});

test("fractions are rounded up once, at the end", () => {
  const exact = { ...formula, yearlyCost: 3600, yearlyHours: 1 };
  const second = role(1, "commander", 0, 1 / 3600);
  expect(costOf({ roles: [second], participants: 1, stableAt: null, now: at(1) }, exact).cost).toBe(1);
  const cheap = { ...formula, yearlyCost: 1, yearlyHours: 1 };
  expect(costOf({ roles: [second], participants: 1, stableAt: null, now: at(1) }, cheap).cost).toBe(1);
});
