import { defineCommand } from "../command.ts";
import { UsageError } from "../errors.ts";

export default defineCommand({
  args: { shell: { type: "positional", description: "bash, zsh or fish" } },
  examples: [
    "svc completion bash > ~/.local/share/bash-completion/completions/svc",
    'svc completion zsh > "$fpath[1]/_svc"',
    "svc completion fish > ~/.config/fish/completions/svc.fish",
  ],
  notes: [
    "The script asks svc itself what may follow, so it need not be written again for a later release. It wants svc on the PATH, and contacts no server.",
  ],
  async run({ shell }, io) {
    const { scripts, shells } = await import("../completion/scripts.ts");
    const known = shells.find((one) => one === shell);
    if (known === undefined) throw new UsageError(`SHELL must be one of ${shells.join(", ")}`);
    io.stdout.write(scripts[known]);
  },
});
