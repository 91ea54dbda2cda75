import { defineCommand } from "../../command.ts";
import { databaseUrl } from "../../database_url.ts";

export default defineCommand({
  args: {
    drift: {
      type: "boolean",
      description:
        "Compare the database with what its revisions make, in a second one beside it that is dropped again",
    },
    json: { type: "boolean", description: "Print JSON" },
  },
  examples: ["svc database check", "svc database check --drift"],
  notes: [
    "For CI: exits 1 when drizzle/schema has changes that no revision makes, when there are several heads, or when a revision cannot be run. With --drift also when somebody changed the database by hand; where there is no clone, for that alone.",
  ],
  async run({ drift, json }, io) {
    const [{ checkRevisions, findDrift }, { isClone }, { Conflict }] = await Promise.all([
      import("../../../drizzle/revision/check.ts"),
      import("../../../platform/own_command.ts"),
      import("../../../platform/errors.ts"),
    ]);
    // In an image, the question is about the database alone.
    const tables = !drift || isClone();
    const findings = await checkRevisions({ tables });
    if (drift) {
      const lines = await findDrift(await databaseUrl(io));
      if (lines.length > 0)
        findings.push({ text: "The database is not what its revisions make:", details: lines });
    }
    if (json) io.stdout.write(`${JSON.stringify(findings)}\n`);
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
