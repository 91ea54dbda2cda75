import type { CommandDefinition } from "./command.ts";

/** A command in the tree: what the help of its parent says about it, and how to get the rest. */
export interface Leaf {
  about: string;
  load: () => Promise<{ default: CommandDefinition }>;
}

/** A command that only holds other commands, e.g. `svc database`. */
export interface Group {
  about: string;
  commands: Readonly<Record<string, Leaf | Group>>;
}

/**
 * Every command of `svc`. The folder tree is the command tree: `cli/commands/database/upgrade.ts` is
 * `svc database upgrade`, and a test holds this table and the folder against each other.
 *
 * To add a command:
 * 1. Write `cli/commands/<group>/<name>.ts` with `export default defineCommand({ args, examples, run })` from
 *    `cli/command.ts`. `run(options, io)` gets the parsed arguments and the outside world; it throws to fail.
 * 2. Add a line here: the name, one sentence for the help, and the `import()`.
 *
 * The sentence stands here and not in the file, so that `svc --help` loads no command at all. Nothing in this file may
 * import a command otherwise than by `import()`.
 */
export const root: Group = {
  about: "Incidents, from the terminal",
  commands: {
    up: {
      about: "Start everything here for a trial: database, server, sign-in provider",
      load: () => import("./commands/up.ts"),
    },
    login: { about: "Sign in through the browser", load: () => import("./commands/login.ts") },
    logout: { about: "Revoke the stored token and forget it", load: () => import("./commands/logout.ts") },
    whoami: { about: "Show who is signed in, and until when", load: () => import("./commands/whoami.ts") },
    token: { about: "Print the access token, for scripts", load: () => import("./commands/token.ts") },
    server: {
      about: "Run the HTTP server",
      commands: {
        start: { about: "Serve an application", load: () => import("./commands/server/start.ts") },
      },
    },
    database: {
      about: "Look after the database",
      commands: {
        upgrade: {
          about: "Bring the schema to the newest revision",
          load: () => import("./commands/database/upgrade.ts"),
        },
      },
    },
    idp: {
      about: "The bundled sign-in provider, for trials and tests only",
      commands: {
        start: { about: "Start the trial sign-in provider", load: () => import("./commands/idp/start.ts") },
      },
    },
  },
};

export function isGroup(node: Leaf | Group): node is Group {
  return "commands" in node;
}

/** The node at a path such as `["database", "upgrade"]`; `[]` is `svc` itself. */
export function find(path: readonly string[], from: Group): Leaf | Group | undefined {
  let node: Leaf | Group | undefined = from;
  for (const name of path) {
    if (node === undefined || !isGroup(node) || !Object.hasOwn(node.commands, name)) return undefined;
    node = node.commands[name];
  }
  return node;
}
