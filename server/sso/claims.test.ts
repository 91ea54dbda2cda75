import { expect, test } from "bun:test";
import { readConfig } from "../../core/config.ts";
import { identityOf } from "./claims.ts";

test("groups are texts of at most 256 characters that can be stored; other values of the claim are ignored", () => {
  const longest = "g".repeat(256);
  const groups = [
    "admin",
    longest,
    `${longest}g`,
    "nul\0",
    "half\ud800",
    42,
    null,
    ["nested"],
    { name: "object" },
  ];
  const claims = { email: "alice@example.com", groups };
  expect(identityOf(readConfig({}), claims).groups).toEqual(["admin", longest]);
});
