import { expect, test } from "bun:test";
import { addressesOf } from "./hosts.ts";

test.each([
  ["one host", "postgres://u:p@a/svc?x=1", ["postgres://u:p@a/svc?x=1"]],
  ["a comma in the password", "postgres://u:p,q@a/svc", ["postgres://u:p,q@a/svc"]],
  ["a comma in a parameter", "postgres://a/svc?options=-c%20a=b,c", ["postgres://a/svc?options=-c%20a=b,c"]],
  ["several hosts", "postgres://u:p@a,b:5433/svc", ["postgres://u:p@a/svc", "postgres://u:p@b:5433/svc"]],
  [
    "target_session_attrs and another parameter",
    "postgres://a,b/svc?target_session_attrs=read-write&sslmode=require",
    ["postgres://a/svc?sslmode=require", "postgres://b/svc?sslmode=require"],
  ],
  [
    "target_session_attrs alone",
    "postgres://a,b/svc?target_session_attrs=any",
    ["postgres://a/svc", "postgres://b/svc"],
  ],
  ["IPv6", "postgresql://[::1]:5432,[::2]/svc", ["postgresql://[::1]:5432/svc", "postgresql://[::2]/svc"]],
  ["no database", "postgres://a,b,c", ["postgres://a", "postgres://b", "postgres://c"]],
])("%s", (_, address, expected) => {
  expect(addressesOf(address)).toEqual(expected as [string]);
});
