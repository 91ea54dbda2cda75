import { defineCommand } from "../../command.ts";

export default defineCommand({
  args: {
    message: {
      type: "string",
      short: "m",
      required: true,
      metavar: "TEXT",
      description: "What it does, in a few words",
    },
    autogenerate: { type: "boolean", description: "Write the SQL from what has changed in drizzle/schema" },
    rename: {
      type: "string",
      multiple: true,
      metavar: "TABLE.OLD:NEW",
      description:
        "A column (or OLD:NEW, a table; OLD:SCHEMA.NEW moves it) was renamed and keeps its data; may be repeated",
    },
    head: { type: "string", metavar: "REV", description: "The head to follow, where there are several" },
    revId: { type: "string", metavar: "ID", description: "Its id (otherwise the time and the message)" },
  },
  instead: {
    "--splice":
      "svc database revision -m TEXT, which follows the head; svc database merge joins several heads",
  },
  examples: [
    'svc database revision --autogenerate -m "incident cost"',
    'svc database revision --autogenerate -m "say title" --rename incident.name:title',
    'svc database revision -m "fill the owner"',
  ],
  notes: [
    "Writes a folder in drizzle/revisions: up.sql, down.sql, manifest.json, and snapshot.json (the schema behind it). Without --autogenerate the SQL is for you to write. Read it before you commit it: a line `-- Look here:` asks for a decision.",
    "Marks that the SQL may hold, each a line of its own: `-- svc: no-transaction` (then it is one statement), `-- svc: irreversible REASON`, and above the statement that is meant: `-- svc: data-loss table NAME`, `-- svc: data-loss column TABLE.NAME`, `-- svc: data-loss column TABLE.NAME where CONDITION`, `-- svc: data-loss TEXT`, `-- svc: no-data-loss REASON`.",
    "It prints what the revision loses, and which --rename a drop and an addition look like. A table whose schema is all that changed is moved.",
    "manifest.json says whether the release before it works on the schema behind it (`compatible`); correct it if you know better.",
  ],
  async run({ message, autogenerate, rename, head, revId }, io) {
    const { createRevision } = await import("../../../drizzle/revision/create.ts");
    const created = await createRevision({
      message,
      autogenerate,
      renames: rename,
      ...{ id: revId, head },
      now: io.clock.now(),
    });
    if (!created) {
      io.stdout.write("Nothing to do: drizzle/schema is what the newest revision says\n");
      return;
    }
    io.stdout.write(`Wrote ${created.folder}\n`);
    for (const line of created.advice) io.stderr.write(`${line}\n`);
  },
});
