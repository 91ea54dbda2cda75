import { whole } from "./start_options.ts";

/** The option of every command that waits for its turn to change the schema. */
export const lockTimeout = {
  type: "custom",
  metavar: "SECONDS",
  description: "Wait so long for another schema change (otherwise 60; 0: not at all)",
  parse: whole(0, 86_400),
} as const;
