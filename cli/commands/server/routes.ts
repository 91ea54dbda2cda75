import { defineCommand } from "../../command.ts";
import { table } from "../../table.ts";
import { printJson } from "../../text.ts";

export default defineCommand({
  summary: "List the server's routes",
  args: { json: { type: "boolean", description: "Print JSON" } },
  examples: ["svc server routes", "svc server routes --json"],
  notes: [
    "Authenticated is True for routes that require an access token. The pages of the sign-in use a session instead, which starts with single sign-on.",
    "Needs no database.",
  ],
  async run({ json }, io) {
    const [{ readEnvironment }, { routeTable }, { createInspectionApp }] = await Promise.all([
      import("../../../platform/environment.ts"),
      import("../../../server/http/route_table.ts"),
      import("../../../server/inspection.ts"),
    ]);
    const rows = routeTable(await createInspectionApp(readEnvironment(io.env)));
    if (json) return printJson(io, rows);
    const cells = rows.map(({ path, authenticated, method }) => [
      path,
      authenticated ? "True" : "False",
      method,
    ]);
    io.stdout.write(table(["Path", "Authenticated", "Methods"], cells));
  },
});
