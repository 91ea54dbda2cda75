import { defineCommand } from "../../command.ts";
import { confirmByName } from "../../confirm.ts";
import { serviceEnvironment } from "../../trial.ts";

export default defineCommand({
  summary: "Start an interactive shell with the application context",
  args: {
    eval: { type: "string", metavar: "CODE", description: "Evaluate CODE and print its value" },
    yes: { type: "boolean", description: "Skip the confirmation for a database on another machine" },
  },
  examples: [
    "svc server shell",
    "svc server shell --eval 'await db.$count(tables.incident)'",
    "svc server shell --yes < script.ts",
  ],
  notes: [
    "Evaluates TypeScript with top-level await. Available: config, db (drizzle), tables, sql (postgres.js: sql`select 1`), app (app.handle(request)), context and clock.",
    "Piped input runs as one script. The history is kept in $XDG_STATE_HOME/svc (default: ~/.local/state/svc).",
  ],
  async run({ eval: code, yes = false }, io) {
    const { shell } = await import("../../../server/shell.ts");
    const { environment } = await serviceEnvironment(io);
    const confirm = (host: string, name: string) =>
      confirmByName(io, `The database ${name} is on ${host}, not on this machine.`, name, yes);
    const interactive = process.stdin.isTTY === true;
    const script = code ?? (interactive ? undefined : await Bun.stdin.text());
    const scriptName = code === undefined ? "<stdin>" : "--eval";
    await shell({ environment, confirm, script, scriptName, write: (text) => void io.stdout.write(text) });
  },
});
