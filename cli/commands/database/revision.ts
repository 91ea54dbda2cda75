import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Create a revision from the changes in drizzle/schema",
  args: {
    message: {
      type: "string",
      short: "m",
      metavar: "TEXT",
      description: "Short description (default: schema change)",
    },
    autogenerate: { type: "boolean", description: "Generate the SQL from the changes in drizzle/schema" },
    rename: {
      type: "string",
      multiple: true,
      metavar: "TABLE.OLD:NEW",
      description:
        "Rename a column, or a value as ENUM.OLD:NEW, and keep its data (OLD:NEW renames a table, OLD:SCHEMA.NEW moves it); can be repeated",
    },
    revId: {
      type: "string",
      metavar: "ID",
      description: "Revision id (default: from the time and the message)",
    },
  },
  instead: {
    "--splice":
      "svc database revision -m TEXT, which follows the head, or svc database merge for several heads",
  },
  examples: [
    'svc database revision --autogenerate -m "incident cost"',
    'svc database revision --autogenerate -m "say title" --rename incident.name:title',
    'svc database revision -m "fill the owner"',
  ],
  notes: [
    "Creates a folder in drizzle/revisions with up.sql, down.sql, manifest.json, and snapshot.json (the schema after the revision). Without --autogenerate, write the SQL yourself. Review the SQL before you commit it: a line `-- Look here:` needs a decision.",
    "The SQL can contain these marks, each on its own line: `-- svc: no-transaction`, `-- svc: irreversible REASON`, and directly above a statement: `-- svc: data-loss table NAME`, `-- svc: data-loss column TABLE.NAME`, `-- svc: data-loss column TABLE.NAME where CONDITION`, `-- svc: data-loss TEXT`, `-- svc: no-data-loss REASON`.",
    "Prints the data that the revision drops, and suggests --rename if a drop and an addition look like a rename. Each index with .concurrently() gets another revision.",
    "`compatible` in manifest.json says whether the previous release works with the new schema; correct it if it is wrong.",
  ],
  async run({ message, autogenerate, rename, revId }, io) {
    const { createRevision } = await import("../../../drizzle/revision/create.ts");
    const created = await createRevision({
      message,
      autogenerate,
      renames: rename,
      id: revId,
      now: io.clock.now(),
    });
    if (!created) {
      io.stdout.write("Nothing to do: drizzle/schema matches the newest revision\n");
      return;
    }
    for (const folder of created.folders) io.stdout.write(`Wrote ${folder}\n`);
    for (const line of created.advice) io.stderr.write(`${line}\n`);
  },
});
