import { defineCommand } from "../command.ts";
import { UsageError } from "../errors.ts";

export default defineCommand({
  summary: "Show the help of a command",
  args: {
    command: {
      type: "positional",
      required: false,
      multiple: true,
      description: "The command, e.g. database upgrade (default: svc)",
    },
    man: { type: "boolean", description: "Print the manual page" },
  },
  examples: ["svc help database upgrade", "svc help --man | man -l -"],
  async run({ command = [], man = false }, io) {
    const [{ helpOf }, { find }, { root }] = await Promise.all([
      import("../frame.ts"),
      import("../command_tree.ts"),
      import("../tree.ts"),
    ]);
    if (man) {
      if (command.length > 0) throw new UsageError("--man takes no command");
      const { manualPage } = await import("../man.ts");
      io.stdout.write(await manualPage(root));
      return;
    }
    if (find(command, root) === undefined) throw new UsageError(`unknown command: ${command.join(" ")}`);
    io.stdout.write(await helpOf(command, root));
  },
});
