import { createHash, timingSafeEqual } from "node:crypto";

/** A user of the trial. `id` becomes `sub` in tokens. */
export interface TrialUser {
  id: string;
  email: string;
  name: string;
  groups: readonly string[];
}

/** Shown wherever it is used, so it protects nothing; that is why the provider then listens on loopback only. */
export const defaultPassword = "trial-password";

export const trialUsers: readonly TrialUser[] = [
  { id: "alice", email: "alice@example.com", name: "Alice Adams", groups: ["admin"] },
  { id: "bob", email: "bob@example.com", name: "Bob Brown", groups: [] },
  { id: "carol", email: "carol@example.com", name: "Carol Clark", groups: [] },
];

/** Accepts `alice`, `Alice@Example.com` and the like; undefined for anyone else. */
export function findUser(name: string): TrialUser | undefined {
  const wanted = name.trim().toLowerCase();
  return trialUsers.find(({ id, email }) => wanted === id || wanted === email);
}

/** Compares in constant time. */
export function samePassword(given: string, right: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(right));
}
