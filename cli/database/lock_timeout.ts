import { whole } from "../start_options.ts";

/** The option of every command that takes the lock for schema changes. */
export const lockTimeout = {
  type: "custom",
  metavar: "SECONDS",
  description: "Time to wait for another schema change; 0 to fail at once (default: 60)",
  parse: whole(0, 86_400),
} as const;
