import { defineCommand } from "../../command.ts";
import { table } from "../../table.ts";
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
    const header = ["Title", "Slug", "Version", "Type", "Author", "Description"];
    io.stdout.write(
      table(
        header,
        list.map((plugin) => Object.values(plugin)),
      ),
    );
  },
});
