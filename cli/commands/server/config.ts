import { ConfigurationError } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import { table } from "../../table.ts";
import { printable, printJson } from "../../text.ts";
import { serviceEnvironment } from "../../trial.ts";
import { unknownVariables } from "../../unknown_variables.ts";

export default defineCommand({
  summary: "Show the effective configuration",
  args: {
    verbose: { type: "boolean", description: "Show the source of each value" },
    json: { type: "boolean", description: "Print JSON" },
  },
  examples: ["svc server config", "svc server config --verbose"],
  notes: [
    "The environment takes precedence over `.env` in the working directory, and that over the defaults. Secrets are masked. `.env.example` describes all variables.",
    "If a value is invalid, the error is on stderr and the exit code is 1.",
  ],
  async run({ verbose = false, json = false }, io) {
    const [{ readEnvironment }, { configRows }, { knownVariables }] = await Promise.all([
      import("../../../platform/environment.ts"),
      import("../../../core/config_rows.ts"),
      import("../../../server/installed_plugins.ts"),
    ]);
    const { environment, trial } = await serviceEnvironment(io);
    const { settings, names } = await knownVariables(environment);
    const { rows, faults } = configRows(
      [
        { source: "environment", environment: io.env },
        { source: ".env", environment: readEnvironment({}) },
        { source: "trial", environment: trial?.environment ?? {} },
      ],
      settings,
    );
    for (const sentence of unknownVariables(environment, names)) io.stderr.write(`svc: ${sentence}\n`);
    if (json) printJson(io, rows);
    else {
      const header = verbose ? ["Key", "Value", "Source"] : ["Key", "Value"];
      // `.env` may be written by somebody else.
      const cells = rows.map(({ key, value, source }) => [
        key,
        printable(value),
        ...(verbose ? [source] : []),
      ]);
      // Not cut to the terminal: a value is only useful as a whole.
      io.stdout.write(table(header, cells));
    }
    if (faults.length > 0) throw new ConfigurationError(faults);
  },
});
