import { defineCommand } from "../../command.ts";
import { table } from "../../table.ts";

export default defineCommand({
  args: { json: { type: "boolean", description: "Print JSON" } },
  examples: ["svc plugin list"],
  notes: [
    "All plugins that there are: those that come with svc, and those of the packages in SVC_PLUGIN_PACKAGES. Which of them serve is chosen by variables: see docs/plugins.md.",
  ],
  async run({ json }, io) {
    const [{ readEnvironment }, { readVariable }, { loadPackages }, { createRegistry }, { builtinPlugins }] =
      await Promise.all([
        import("../../../core/environment.ts"),
        import("../../../core/variable.ts"),
        import("../../../core/plugin/load.ts"),
        import("../../../core/plugin/registry.ts"),
        import("../../../plugins/builtin.ts"),
      ]);
    // No other variable is looked at: what there is can be seen before the rest of the configuration is right.
    const { text } = readVariable(readEnvironment(io.env), "SVC_PLUGIN_PACKAGES", false);
    const packages = await loadPackages(text, { directory: process.cwd() });
    const { all } = createRegistry([{ origin: "svc", exported: builtinPlugins }, ...packages]);
    const list = all.map(({ title, slug, version, type, author, description }) => ({
      title,
      slug,
      version,
      type,
      author,
      description,
    }));
    if (json) {
      io.stdout.write(`${JSON.stringify(list)}\n`);
      return;
    }
    const header = ["Title", "Slug", "Version", "Type", "Author", "Description"];
    io.stdout.write(
      table(
        header,
        list.map((plugin) => Object.values(plugin)),
      ),
    );
  },
});
