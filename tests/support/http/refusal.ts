import { expect } from "bun:test";

/** Expects a refusal: no page with buttons, no session with a name, and no text of the issuer. */
export async function expectRefused(
  page: { status: number; text: string },
  status: number,
  sentence: string,
) {
  expect(page.status).toBe(status);
  expect(page.text).toContain(sentence);
  expect(page.text).not.toContain('value="approve"');
  expect(page.text).not.toContain("secret detail");
}
