import { Conflict } from "../../../platform/errors.ts";
import { isClone } from "../../../platform/own_command.ts";
import { defineCommand } from "../../command.ts";
import { databaseUrl } from "../../database/url.ts";
import { printJson } from "../../text.ts";

export default defineCommand({
  summary: "Check that the schema, the revisions and the database match",
  args: {
    drift: {
      type: "boolean",
      description: "Compare the database with a temporary one built from its revisions",
    },
    json: { type: "boolean", description: "Print JSON" },
  },
  examples: ["svc database check", "svc database check --drift"],
  notes: [
    "For CI: exits with 1 if drizzle/schema has changes without a revision, if there are several heads, or if a revision cannot run. With --drift, also if the database was changed by hand, or if the revisions do not create the tables in drizzle/schema; outside a clone, it checks only that.",
  ],
  async run({ drift, json }, io) {
    const { checkRevisions, findDrift, findWrongRevisions } =
      await import("../../../drizzle/revision/check.ts");
    // An image has no drizzle/schema to compare with.
    const tables = !drift || isClone();
    const findings = await checkRevisions({ tables });
    if (drift) {
      const url = await databaseUrl(io);
      const lines = await findDrift(url);
      if (lines.length > 0)
        findings.push({ text: "The database differs from its revisions:", details: lines });
      const wrong = findings.length > 0 ? [] : await findWrongRevisions(url);
      if (wrong.length > 0)
        findings.push({ text: "The revisions do not create the tables in drizzle/schema:", details: wrong });
    }
    if (json) printJson(io, findings);
    for (const { text, details } of json ? [] : findings) {
      io.stdout.write(`${text}\n${details.map((line) => `  ${line}\n`).join("")}`);
    }
    if (findings.length > 0)
      throw new Conflict(
        `${findings.length} ${findings.length === 1 ? "thing needs" : "things need"} attention`,
      );
    if (json) return;
    const unchanged = `No changes without a revision${drift ? ", and no drift" : ""}`;
    io.stdout.write(`${tables ? unchanged : "No drift"}\n`);
  },
});
