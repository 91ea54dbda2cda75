import type { Group, Leaf } from "./command_tree.ts";

const access: Group = {
  summary: "Request access to databases and other systems, and use it",
  commands: {
    list: () => import("./commands/access/list.ts"),
    request: () => import("./commands/access/request.ts"),
    requests: () => import("./commands/access/requests.ts"),
    approve: async () => ({ default: (await import("./commands/access/decisions.ts")).approve }),
    deny: async () => ({ default: (await import("./commands/access/decisions.ts")).deny }),
    cancel: async () => ({ default: (await import("./commands/access/decisions.ts")).cancel }),
    review: async () => ({ default: (await import("./commands/access/decisions.ts")).review }),
    get: () => import("./commands/access/get.ts"),
    run: () => import("./commands/access/run.ts"),
    leases: () => import("./commands/access/leases.ts"),
    renew: () => import("./commands/access/renew.ts"),
    revoke: () => import("./commands/access/revoke.ts"),
    check: () => import("./commands/access/check.ts"),
    reconcile: () => import("./commands/access/reconcile.ts"),
    apply: () => import("./commands/access/apply.ts"),
    delete: () => import("./commands/access/delete.ts"),
    authority: {
      summary: "Manage the authorities that sign certificates",
      commands: {
        list: () => import("./commands/access/authority/list.ts"),
        rotate: () => import("./commands/access/authority/rotate.ts"),
      },
    },
  },
};

const certificates: Group = {
  summary: "List and revoke client certificates",
  commands: {
    list: () => import("./commands/certificates/list.ts"),
    revoke: () => import("./commands/certificates/revoke.ts"),
  },
};

const signIns: Group = {
  summary: "List and end sign-ins",
  commands: {
    list: () => import("./commands/sign-ins/list.ts"),
    revoke: () => import("./commands/sign-ins/revoke.ts"),
  },
};

const report: Leaf = () => import("./commands/incident/report.ts");

const incident: Group = {
  summary: "Report incidents, follow them and work on them",
  instead: {
    create: "svc incident report TITLE",
    new: "svc incident report TITLE",
    show: "svc incident view",
    log: "svc incident view --timeline",
    timeline: "svc incident view --timeline",
    ack: "svc incident join",
    acknowledge: "svc incident join",
    comment: "svc incident note TEXT",
    correct: "svc incident amend ENTRY",
    resolve: "svc incident close -r TEXT",
    assign: "svc incident task assign, or svc incident role give",
  },
  commands: {
    report,
    // Another common name.
    declare: report,
    list: () => import("./commands/incident/list.ts"),
    view: () => import("./commands/incident/view.ts"),
    watch: () => import("./commands/incident/watch.ts"),
    use: () => import("./commands/incident/use.ts"),
    current: () => import("./commands/incident/current.ts"),
    update: () => import("./commands/incident/update.ts"),
    note: () => import("./commands/incident/note.ts"),
    say: () => import("./commands/incident/say.ts"),
    messages: () => import("./commands/incident/messages.ts"),
    amend: () => import("./commands/incident/amend.ts"),
    withdraw: () => import("./commands/incident/withdraw.ts"),
    redact: () => import("./commands/incident/redact.ts"),
    history: () => import("./commands/incident/history.ts"),
    stable: () => import("./commands/incident/stable.ts"),
    close: () => import("./commands/incident/close.ts"),
    reopen: () => import("./commands/incident/reopen.ts"),
    edit: () => import("./commands/incident/edit.ts"),
    link: () => import("./commands/incident/link.ts"),
    unlink: () => import("./commands/incident/unlink.ts"),
    affected: {
      summary: "Manage the services and applications that an incident affects",
      commands: {
        add: () => import("./commands/incident/affected/add.ts"),
        remove: () => import("./commands/incident/affected/remove.ts"),
      },
    },
    status: () => import("./commands/incident/status.ts"),
    drafts: () => import("./commands/incident/drafts.ts"),
    export: () => import("./commands/incident/export.ts"),
    postmortem: () => import("./commands/incident/postmortem.ts"),
    join: () => import("./commands/incident/join.ts"),
    leave: () => import("./commands/incident/leave.ts"),
    add: () => import("./commands/incident/add.ts"),
    remove: () => import("./commands/incident/remove.ts"),
    role: {
      summary: "Take, give and drop roles",
      commands: {
        take: () => import("./commands/incident/role/take.ts"),
        give: () => import("./commands/incident/role/give.ts"),
        drop: () => import("./commands/incident/role/drop.ts"),
      },
    },
    task: {
      summary: "Manage the tasks of an incident",
      commands: {
        list: () => import("./commands/incident/task/list.ts"),
        add: () => import("./commands/incident/task/add.ts"),
        done: () => import("./commands/incident/task/done.ts"),
        reopen: () => import("./commands/incident/task/reopen.ts"),
        assign: () => import("./commands/incident/task/assign.ts"),
      },
    },
    doc: {
      summary: "Manage the documents of an incident",
      commands: {
        list: () => import("./commands/incident/doc/list.ts"),
        new: () => import("./commands/incident/doc/new.ts"),
        show: () => import("./commands/incident/doc/show.ts"),
        history: () => import("./commands/incident/doc/history.ts"),
        edit: () => import("./commands/incident/doc/edit.ts"),
        redact: () => import("./commands/incident/doc/redact.ts"),
      },
    },
  },
};

const plugin: Group = {
  summary: "Manage plugins",
  commands: { list: () => import("./commands/plugin/list.ts") },
};

/**
 * Every command of `svc`. The folder tree is the command tree: `cli/commands/database/upgrade.ts` is
 * `svc database upgrade`, and a test compares this table with the folder. CONTRIBUTING.md says how to add a command.
 *
 * The table is written out, not read from the folder, because the single executable bundles what an `import()` names. A
 * command is imported when it runs or when its help is shown; the help of a group imports the files of that group.
 */
export const root: Group = {
  summary: "Manage incidents from the command line",
  commands: {
    up: () => import("./commands/up.ts"),
    login: () => import("./commands/login.ts"),
    logout: () => import("./commands/logout.ts"),
    whoami: () => import("./commands/whoami.ts"),
    token: () => import("./commands/token.ts"),
    incident,
    inc: incident,
    search: () => import("./commands/search.ts"),
    stats: () => import("./commands/stats.ts"),
    access,
    // The specification speaks of credential requests. The same object is the same folder.
    credentials: access,
    certificates,
    "sign-ins": signIns,
    audit: () => import("./commands/audit.ts"),
    server: {
      summary: "Run and inspect the HTTP server",
      commands: {
        config: () => import("./commands/server/config.ts"),
        develop: () => import("./commands/server/develop.ts"),
        routes: () => import("./commands/server/routes.ts"),
        shell: () => import("./commands/server/shell.ts"),
        start: () => import("./commands/server/start.ts"),
      },
    },
    scheduler: {
      summary: "Run and monitor scheduled tasks",
      commands: {
        list: () => import("./commands/scheduler/list.ts"),
        start: () => import("./commands/scheduler/start.ts"),
        status: () => import("./commands/scheduler/status.ts"),
        explain: () => import("./commands/scheduler/explain.ts"),
        pause: () => import("./commands/scheduler/pause.ts"),
        resume: () => import("./commands/scheduler/resume.ts"),
        rewind: () => import("./commands/scheduler/rewind.ts"),
        work: () => import("./commands/scheduler/work.ts"),
        deliveries: () => import("./commands/scheduler/deliveries.ts"),
      },
    },
    database: {
      summary: "Manage the database",
      instead: {
        show: "svc database history --verbose",
        branches: "svc database heads, or svc database history",
        edit: "an editor, for drizzle/revisions/REV/up.sql and down.sql",
        migrate: "svc database upgrade",
        rollback: "svc database downgrade",
        status: "svc database current",
      },
      commands: {
        init: () => import("./commands/database/init.ts"),
        upgrade: () => import("./commands/database/upgrade.ts"),
        downgrade: () => import("./commands/database/downgrade.ts"),
        revision: () => import("./commands/database/revision.ts"),
        heads: () => import("./commands/database/heads.ts"),
        history: () => import("./commands/database/history.ts"),
        current: () => import("./commands/database/current.ts"),
        check: () => import("./commands/database/check.ts"),
        stamp: () => import("./commands/database/stamp.ts"),
        merge: () => import("./commands/database/merge.ts"),
        repair: () => import("./commands/database/repair.ts"),
        populate: () => import("./commands/database/populate.ts"),
        "sync-triggers": () => import("./commands/database/sync-triggers.ts"),
        dump: () => import("./commands/database/dump.ts"),
        restore: () => import("./commands/database/restore.ts"),
        drop: () => import("./commands/database/drop.ts"),
      },
    },
    plugin,
    // The reference uses both names for this group. The same object is the same folder.
    plugins: plugin,
    completion: () => import("./commands/completion.ts"),
    help: () => import("./commands/help.ts"),
    idp: {
      summary: "Run the trial sign-in provider",
      commands: { start: () => import("./commands/idp/start.ts") },
    },
  },
};
