import { beforeEach, expect, test } from "bun:test";
import { readConfig } from "../../core/config.ts";
import { createLog } from "../../platform/log.ts";
import { identityOf } from "./claims.ts";

let logged: object[];
beforeEach(() => {
  logged = [];
});
const log = createLog("info", { write: (line) => void logged.push(JSON.parse(line)) });
const groupsOf = (claims: object, name = "groups") =>
  identityOf(
    { config: readConfig({ SVC_OIDC_GROUPS_CLAIM: name }), log },
    { email: "alice@example.com", ...claims },
  ).groups;

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
  expect(groupsOf({ groups })).toEqual(["admin", longest]);
  expect(logged).toEqual([expect.objectContaining({ level: 40, claim: "groups", ignored: 7 })]);
});

const zitadel = "urn:zitadel:iam:org:project:roles";
test.each([
  ["groups", { groups: "oncall" }, ["oncall"]],
  [zitadel, { [zitadel]: { admin: { "1": "example.com" }, oncall: {} } }, ["admin", "oncall"]],
  ["realm_access.roles", { realm_access: { roles: ["admin"] } }, ["admin"]],
  ["resource_access.svc.roles", { resource_access: { svc: { roles: ["admin"] } } }, ["admin"]],
  ["https://example.com/groups", { "https://example.com/groups": ["admin"] }, ["admin"]],
  ["a.b", { "a.b": ["right"], a: { b: ["wrong"] } }, ["right"]],
  ["groups", { groups: [] }, []],
  ["groups", { groups: null }, []],
])("the claim %s of %j gives the groups %j", (name, claims, groups) => {
  expect(groupsOf(claims, name)).toEqual(groups);
  expect(logged).toEqual([]);
});

test.each([
  ["groups", { groups: { roles: ["admin"] } }, 40],
  ["groups", { groups: { admin: true } }, 40],
  ["groups", { groups: 7 }, 40],
  ["groups", {}, 30],
  ["constructor.name", {}, 30],
  ["realm_access.roles", { realm_access: null }, 30],
])("the claim %s of %j gives no groups, and a line in the log", (name, claims, level) => {
  expect(groupsOf(claims, name)).toEqual([]);
  expect(logged).toEqual([expect.objectContaining({ level, claim: name })]);
});
