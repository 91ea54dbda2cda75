import { defineCommand } from "../command.ts";
import { UsageError } from "../errors.ts";

export default defineCommand({
  summary: "Print the completion script for a shell",
  args: { shell: { type: "positional", description: "bash, zsh or fish" } },
  examples: [
    "svc completion bash > ~/.local/share/bash-completion/completions/svc",
    'svc completion zsh > "$fpath[1]/_svc"',
    "svc completion fish > ~/.config/fish/completions/svc.fish",
  ],
  notes: [
    "The script runs svc for the candidates, so it also works for later releases. svc must be on the PATH. The server is asked only for the arguments of svc incident.",
  ],
  async run({ shell }, io) {
    const { scripts, shells } = await import("../completion/scripts.ts");
    const known = shells.find((one) => one === shell);
    if (known === undefined) throw new UsageError(`SHELL must be one of ${shells.join(", ")}`);
    io.stdout.write(scripts[known]);
  },
});
