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

/** The words of a command that takes a text. */
export const wordsArg = {
  words: {
    type: "positional",
    required: false,
    multiple: true,
    metavar: "TEXT",
    description:
      "The text, or - for stdin; without one, your editor opens. A first word such as INC-7 names the incident",
  },
} as const;

/** Other places from which a text comes. */
export const textArgs = (what: string) =>
  ({
    file: {
      type: "string",
      short: "F",
      metavar: "FILE",
      description: `Read ${what} from FILE, or - for stdin`,
    },
    editor: {
      type: "boolean",
      short: "e",
      description: `Write ${what} in your editor (VISUAL, or else EDITOR)`,
    },
  }) as const;
