import { expect, test } from "bun:test";
import { looksLikeSecret, newSecret, newUserCode, sameText } from "./secret.ts";

test("secrets are 43 characters of base64url, and all different", () => {
  const secrets = Array.from({ length: 1000 }, newSecret);
  expect(secrets.every(looksLikeSecret)).toBe(true);
  expect(new Set(secrets).size).toBe(1000);
});

test("codes have eight consonants, and all of them occur", () => {
  const codes = Array.from({ length: 1000 }, newUserCode);
  for (const code of codes) expect(code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
  expect(new Set(codes.join("").replaceAll("-", "")).size).toBe(20);
});

test("sameText tests equality", () => {
  expect(sameText("", "")).toBe(true);
  expect(sameText("abc", "abc")).toBe(true);
  expect(sameText("abc", "abd")).toBe(false);
  expect(sameText("abc", "ab")).toBe(false);
  expect(sameText("\u0000", "\u0100")).toBe(false);
});
