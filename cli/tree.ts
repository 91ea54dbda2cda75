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
  /** For names that people know from elsewhere: the command line to type instead. */
  instead?: Readonly<Record<string, string>>;
}

const plugin: Group = {
  about: "Look at the plugins",
  commands: {
    list: { about: "List all plugins that can be chosen", load: () => import("./commands/plugin/list.ts") },
  },
};

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
      about: "Start everything here for a trial: database, server, worker, sign-in provider",
      load: () => import("./commands/up.ts"),
    },
    login: { about: "Sign in through the browser", load: () => import("./commands/login.ts") },
    logout: { about: "Revoke the stored token and forget it", load: () => import("./commands/logout.ts") },
    whoami: { about: "Show who is signed in, and until when", load: () => import("./commands/whoami.ts") },
    token: { about: "Print the access token, for scripts", load: () => import("./commands/token.ts") },
    server: {
      about: "Run the HTTP server",
      commands: {
        config: {
          about: "Show the configuration as the server sees it",
          load: () => import("./commands/server/config.ts"),
        },
        develop: {
          about: "Serve while you write: start again after every change",
          load: () => import("./commands/server/develop.ts"),
        },
        routes: {
          about: "Show what the server answers to, and who is answered",
          load: () => import("./commands/server/routes.ts"),
        },
        shell: {
          about: "Type JavaScript with the application at hand",
          load: () => import("./commands/server/shell.ts"),
        },
        start: { about: "Serve an application", load: () => import("./commands/server/start.ts") },
      },
    },
    scheduler: {
      about: "Run and watch the schedule",
      commands: {
        list: { about: "List the tasks of the schedule", load: () => import("./commands/scheduler/list.ts") },
        start: {
          about: "Run tasks when they are due, until stopped",
          load: () => import("./commands/scheduler/start.ts"),
        },
        status: {
          about: "Show last runs, next slots and what is late",
          load: () => import("./commands/scheduler/status.ts"),
        },
        explain: {
          about: "Tell what is due of a task, and why",
          load: () => import("./commands/scheduler/explain.ts"),
        },
        pause: {
          about: "Claim no more slots of a task",
          load: () => import("./commands/scheduler/pause.ts"),
        },
        resume: {
          about: "Claim the slots of a paused task again",
          load: () => import("./commands/scheduler/resume.ts"),
        },
        rewind: {
          about: "End a standstill after the database's clock was ahead",
          load: () => import("./commands/scheduler/rewind.ts"),
        },
        work: {
          about: "Show the durable work that waits or is dead, and try it again",
          load: () => import("./commands/scheduler/work.ts"),
        },
        deliveries: {
          about: "Show what waits to be sent and what could not be, and send it again",
          load: () => import("./commands/scheduler/deliveries.ts"),
        },
      },
    },
    database: {
      about: "Look after the database",
      instead: {
        show: "svc database history --verbose --range REV:REV",
        branches: "svc database heads, or svc database history",
        edit: "an editor, for drizzle/revisions/REV/up.sql and down.sql",
        migrate: "svc database upgrade",
        rollback: "svc database downgrade",
        status: "svc database current",
      },
      commands: {
        init: {
          about: "Create the database, bring it to the newest revision, write the defaults",
          load: () => import("./commands/database/init.ts"),
        },
        upgrade: {
          about: "Bring the schema to the newest revision",
          load: () => import("./commands/database/upgrade.ts"),
        },
        downgrade: {
          about: "Take the newest revision back",
          load: () => import("./commands/database/downgrade.ts"),
        },
        revision: {
          about: "Write a new revision, from what has changed in drizzle/schema",
          load: () => import("./commands/database/revision.ts"),
        },
        heads: {
          about: "Show the heads of the revisions",
          load: () => import("./commands/database/heads.ts"),
        },
        history: {
          about: "Show the revisions, newest first",
          load: () => import("./commands/database/history.ts"),
        },
        current: {
          about: "Show which revision the database is at",
          load: () => import("./commands/database/current.ts"),
        },
        check: {
          about: "Tell whether drizzle/schema, the revisions and the database agree",
          load: () => import("./commands/database/check.ts"),
        },
        stamp: {
          about: "Note that the database is at a revision, and run nothing",
          load: () => import("./commands/database/stamp.ts"),
        },
        merge: { about: "Join several heads", load: () => import("./commands/database/merge.ts") },
        repair: {
          about: "Decide about a revision that was edited or interrupted",
          load: () => import("./commands/database/repair.ts"),
        },
        populate: {
          about: "Write the default incident types, priorities and cost constants",
          load: () => import("./commands/database/populate.ts"),
        },
        "sync-triggers": {
          about: "Make sure that all triggers are installed",
          load: () => import("./commands/database/sync-triggers.ts"),
        },
        dump: {
          about: "Back up the database to svc-backup.dump",
          load: () => import("./commands/database/dump.ts"),
        },
        restore: {
          about: "Bring back what svc-backup.dump holds",
          load: () => import("./commands/database/restore.ts"),
        },
        drop: { about: "Drop all data", load: () => import("./commands/database/drop.ts") },
      },
    },
    plugin,
    // The plural, too: the reference is not sure about the name of this group. The same object is the same folder.
    plugins: plugin,
    completion: {
      about: "Print the script that completes svc in your shell",
      load: () => import("./commands/completion.ts"),
    },
    help: { about: "Tell about a command", load: () => import("./commands/help.ts") },
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
