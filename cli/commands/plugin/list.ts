import { defineCommand } from "../../command.ts";
import { printTable } from "../../table.ts";
import { printJson } from "../../text.ts";

export default defineCommand({
  summary: "List the available plugins",
  args: { json: { type: "boolean", description: "Print JSON" } },
  examples: ["svc plugin list"],
  notes: [
    "Lists the plugins of svc and of the packages in SVC_PLUGIN_PACKAGES. Variables choose which of them are used: see docs/plugins.md.",
  ],
  async run({ json }, io) {
    const [{ readEnvironment }, { installedPlugins }] = await Promise.all([
      import("../../../platform/environment.ts"),
      import("../../../server/installed_plugins.ts"),
    ]);
    const { all } = await installedPlugins(readEnvironment(io.env));
    const list = all.map(({ title, slug, version, type, author, description }) => ({
      title,
      slug,
      version,
      type,
      author,
      description,
    }));
    if (json) return printJson(io, list);
    const columns = [
      { header: "Title", flexible: true },
      "Slug",
      { header: "Version", leaveOut: 2 },
      { header: "Type", leaveOut: 3 },
      { header: "Author", leaveOut: 1 },
      { header: "Description", flexible: true, leaveOut: 4 },
    ];
    const rows = list.map((plugin) => Object.values(plugin));
    printTable(io, columns, rows);
  },
});
