import type { Actor } from "../../../core/context.ts";

/** Somebody who is signed in, for code that no request has reached. */
export const signedIn = (name: string, more: Partial<Actor> = {}): Actor => ({
  kind: "user",
  user: `${name}@example.com`,
  groups: [],
  admin: false,
  tokenId: "t",
  expiresAt: new Date("2030-01-01T00:00:00Z"),
  ...more,
});
