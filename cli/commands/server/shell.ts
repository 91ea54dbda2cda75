import { defineCommand } from "../../command.ts";

export default defineCommand({
  args: {
    eval: { type: "string", metavar: "CODE", description: "Run this instead of asking, and print its value" },
    yes: { type: "boolean", description: "Do not ask before a database that is not on this machine" },
  },
  examples: [
    "svc server shell",
    "svc server shell --eval 'await db.$count(tables.incident)'",
    "svc server shell --yes < script.ts",
  ],
  notes: [
    "TypeScript with await at the top level. config, db (drizzle), tables, sql (postgres.js: sql`select 1`), app (not served; app.handle(request) asks it), context and clock are there.",
    "What comes through a pipe is run as one script. The history is kept in the data directory of the person (XDG_STATE_HOME, otherwise ~/.local/state/svc).",
  ],
  async run({ eval: code, yes = false }, io) {
    const [{ shell }, { serviceEnvironment }] = await Promise.all([
      import("../../../server/shell.ts"),
      import("../../trial.ts"),
    ]);
    const { environment } = await serviceEnvironment(io);
    const confirm = async (host: string, name: string) => {
      const { confirmByName } = await import("../../confirm.ts");
      await confirmByName(io, `The database ${name} is on ${host}, not on this machine.`, name, yes);
    };
    const interactive = process.stdin.isTTY === true;
    const script = code ?? (interactive ? undefined : await Bun.stdin.text());
    const scriptName = code === undefined ? "<stdin>" : "--eval";
    await shell({ environment, confirm, script, scriptName, write: (text) => void io.stdout.write(text) });
  },
});
