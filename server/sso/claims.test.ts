import { beforeEach, expect, test } from "bun:test";
import fc from "fast-check";
import { readUser } from "../../cli/client/answer.ts";
import { groupsOf as certificateGroups } from "../../core/auth/certificate/identify.ts";
import { readConfig } from "../../core/config.ts";
import type { Identity } from "../../core/context.ts";
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

test("groups are texts of at most 256 characters that can be stored and shown; other values of the claim are ignored", () => {
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
    "",
    " \t",
    "soft\u00adhyphen",
    "two\nlines",
    "\u202egnp.exe",
    "\u{e000}",
    "Bereitschaft Süd, می\u200cخواهم",
  ];
  const shown = groups.at(-1) as string;
  expect(groupsOf({ groups })).toEqual(["admin", longest, shown]);
  const first = `"${longest.slice(0, 99)}`;
  expect(logged).toEqual([
    expect.objectContaining({
      level: 40,
      claim: "groups",
      user: "alice@example.com",
      ignored: 13,
      first: `${first}…`,
    }),
  ]);
});

test("every group and user name that is stored can be read by the client", () => {
  const characters = fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme" }));
  fc.assert(
    fc.property(fc.array(characters), characters, (groups, name) => {
      let identity: Identity;
      try {
        identity = identityOf({ config: readConfig({}), log }, { email: `${name}@example.com`, groups });
      } catch {
        return;
      }
      expect(readUser(identity.user)).toBe(identity.user);
      expect(identity.groups.map(readUser)).toEqual(identity.groups);
    }),
    { numRuns: 1000 },
  );
});

test("the groups that Entra ID keeps elsewhere are a warning that says what to change", () => {
  const claims = {
    _claim_names: { groups: "src1" },
    _claim_sources: { src1: { endpoint: "https://graph" } },
  };
  expect(groupsOf(claims)).toEqual([]);
  expect(logged).toEqual([
    expect.objectContaining({
      level: 40,
      user: "alice@example.com",
      msg: expect.stringContaining("group overage"),
    }),
  ]);
});

test.each([[undefined], [null], [true], ["true"]])("email_verified: %j admits", (email_verified) => {
  const claims = { email: "alice@example.com", email_verified, groups: [] };
  expect(identityOf({ config: readConfig({}), log }, claims).user).toBe("alice@example.com");
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

test("a group is the same in both spellings of é, as is SVC_ADMIN_GROUP", () => {
  const decomposed = "e\u0301quipe";
  const composed = "\u00e9quipe";
  expect(groupsOf({ groups: [decomposed, composed] })).toEqual([composed, composed]);
  expect(readConfig({ SVC_ADMIN_GROUP: decomposed }).adminGroup).toBe(composed);
  expect(
    certificateGroups({ units: [], organisations: [], uris: [] }, "ada", `user:ada=${decomposed}`),
  ).toEqual([composed]);
});
