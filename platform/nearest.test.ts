import { expect, test } from "bun:test";
import { nearest } from "./nearest.ts";

const COMMANDS = ["up", "login", "logout", "whoami", "database"];

test.each([
  ["lgoin", "login"],
  ["logn", "login"],
  ["logot", "logout"],
  ["databse", "database"],
  ["dattabas", "database"],
  ["upp", "up"],
  ["zzz", undefined],
  ["xx", undefined],
  ["", undefined],
])("%p is nearest to %p", (name, expected) => {
  expect(nearest(name, COMMANDS)).toBe(expected);
});
