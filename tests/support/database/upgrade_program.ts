import { readRevisionsFrom } from "../../../drizzle/revision/history.ts";
import { upgrade } from "../../../drizzle/revision/upgrade.ts";

// `svc database upgrade` with the revisions of a folder: bun upgrade_program.ts <folder>
const [folder = ""] = process.argv.slice(2);
try {
  const revisions = await readRevisionsFrom(folder);
  const { applied } = await upgrade({ url: process.env.SVC_DATABASE_URL!, revisions });
  console.log(applied.join("\n"));
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
