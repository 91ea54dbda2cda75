import { after } from "../../platform/clock.ts";

const firstSeconds = 30;
const longestSeconds = 3600;
/** How often a step is tried by itself. */
export const mostAttempts = 10;

/** When a step that has failed `attempts` times is due again; null: when a person asks for it. */
export function dueAgain(at: Date, attempts: number): Date | null {
  if (attempts >= mostAttempts) return null;
  return after(at, Math.min(firstSeconds * 2 ** (attempts - 1), longestSeconds));
}
