import { defineCommand } from "../../command.ts";
import { table } from "../../table.ts";

export default defineCommand({
  args: { json: { type: "boolean", description: "Print JSON" } },
  examples: ["svc server routes", "svc server routes --json"],
  notes: [
    "Authenticated is True where only the holder of an access token is answered. Pages of the sign-in have a session of their own, which begins at single sign-on.",
    "The application is built and asked; no database is needed.",
  ],
  async run({ json }, io) {
    const [{ readEnvironment }, { routeTable }, { createInspectionApp }] = await Promise.all([
      import("../../../platform/environment.ts"),
      import("../../../server/http/route_table.ts"),
      import("../../../server/inspection.ts"),
    ]);
    const rows = routeTable(await createInspectionApp(readEnvironment(io.env)));
    if (json) {
      io.stdout.write(`${JSON.stringify(rows)}\n`);
      return;
    }
    const cells = rows.map(({ path, authenticated, method }) => [
      path,
      authenticated ? "True" : "False",
      method,
    ]);
    io.stdout.write(table(["Path", "Authenticated", "Methods"], cells));
  },
});
