import { expect } from "bun:test";

/** Nobody got in: no page with buttons, no session with a name, and nothing that the issuer said. */
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
