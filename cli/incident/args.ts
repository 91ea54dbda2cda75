import { clientArgs, serverArgs } from "../client/args.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";

/** The incident as the only word of a command. */
export const idArg = {
  id: {
    type: "positional",
    required: false,
    metavar: "ID",
    description:
      "The incident: INC-7, its number or its URL (default: SVC_INCIDENT, the one in use, or your only one)",
  },
  incident: { type: "string", short: "i", metavar: "ID", description: "The incident, like ID" },
} as const;

/** The incident, for commands whose text is an option, and `-` for a text from stdin. */
export const idDashArgs = {
  id: idArg.id,
  dash: { type: "positional", required: false, metavar: "-", description: "Read the text from stdin" },
  incident: idArg.incident,
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

export { clientArgs, serverArgs };

/** For commands whose words are numbers of something else, which name their incident. */
export const incidentCheckArg = {
  incident: { ...incidentArg.incident, description: "The incident that they must belong to" },
} as const;

/** The words of a command, of which the first may name the incident. */
export const wordsArg = (metavar: string, what: string, required = true) =>
  ({
    words: {
      type: "positional",
      required,
      multiple: true,
      metavar,
      description: `${what}. A first word such as INC-7, 7 or a URL names the incident`,
    },
  }) as const;

export const textArg = wordsArg("TEXT", "The text, or - for stdin; without one, your editor opens", false);

/** A text as an option, which `""` makes empty. */
export const textOption = (short: string, description: string) =>
  ({ type: "string", short, metavar: "TEXT", description, mayBeEmpty: true }) as const;

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

export const roles = ["commander", "scribe", "liaison", "participant", "reporter", "observer"] as const;

/** The role with which somebody takes part. */
export const roleArg = {
  role: {
    type: "enum",
    metavar: "ROLE",
    description: "Role in the incident, by default participant",
    choices: roles,
  },
} as const;

export const usersArg = wordsArg("USER", "Address, the part of it before the @, name, or me");

export const roleWordArg = wordsArg("ROLE", roles.join(", "), false);

export const roleUserArg = wordsArg("USER [ROLE]", `The person, then the role: ${roles.join(", ")}`);

export const tasksArg = {
  tasks: {
    type: "positional",
    multiple: true,
    metavar: "TASK",
    description: "The numbers of the tasks, which are unique on the server",
  },
} as const;

export const docArg = {
  doc: { type: "positional", metavar: "DOCUMENT", description: "The number or name of the document" },
} as const;

/** A version of a document's text. */
export const versionArg = (description: string) =>
  ({ version: { type: "number", metavar: "VERSION", description } }) as const;

export const othersArg = {
  words: {
    type: "positional",
    multiple: true,
    metavar: "OTHER",
    description: "The other incidents. Of several, the first is the incident itself",
  },
} as const;

export const affectedArg = wordsArg(
  "NAME",
  "Services and applications by name; service:NAME or application:NAME if both have it",
);

export const limitArg = (what: string, count = 30) =>
  ({
    limit: {
      type: "number",
      short: "L",
      metavar: "COUNT",
      default: count,
      description: `Maximum number of ${what}`,
    },
  }) as const;

const mostShown = 1000;

/** @throws UsageError */
export function limitOf(limit: number, most = mostShown): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= most) return limit;
  throw new UsageError(`--limit must be 1 to ${most}`);
}

/** Says on stderr that there are more than the limit, also if stdout is JSON. `otherwise` is for those who cannot raise it. */
export function tellMore({ stderr }: Io, limit: number, otherwise: string, most = mostShown): void {
  stderr.write(`There are more: ${limit < most ? `--limit ${Math.min(limit * 2, most)}` : otherwise}\n`);
}

/** For what removes a text permanently. */
export const redactionArgs = {
  reason: {
    type: "string",
    required: true,
    metavar: "TEXT",
    description: "Why, for the timeline and the audit log; not what it said; - reads stdin",
  },
  yes: { type: "boolean", short: "y", description: "Skip the confirmation" },
} as const;
