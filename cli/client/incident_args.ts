import { clientArgs } from "./args.ts";

/** The incident as the only word of a command. */
export const idArg = {
  id: {
    type: "positional",
    required: false,
    metavar: "ID",
    description:
      "The incident: INC-7, its number or its URL (default: SVC_INCIDENT, the one in use, or your only one)",
  },
} as const;

/** The incident as an option, for commands whose words are something else. */
export const incidentArg = {
  incident: {
    type: "string",
    short: "i",
    metavar: "ID",
    description: "The incident (default: SVC_INCIDENT, the one in use, or your only one)",
  },
} as const;

export { clientArgs };
