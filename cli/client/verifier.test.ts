import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { newVerifier } from "./login.ts";

test("32 random bytes, and the S256 of their text (RFC 7636 4.2)", () => {
  const { verifier, challenge } = newVerifier();
  expect(verifier).toMatch(/^[\w-]{43}$/);
  expect(challenge).toBe(createHash("sha256").update(verifier, "ascii").digest("base64url"));
  expect(newVerifier().verifier).not.toBe(verifier);
});
