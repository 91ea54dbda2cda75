import { NotFound } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import { ExitCode } from "../../errors.ts";
import { clientArgs } from "../../incident/args.ts";
import { jsonText, printable, printJson } from "../../text.ts";

export default defineCommand({
  summary: "Show the incident that is in use",
  args: {
    short: {
      type: "boolean",
      description: "Print only its name, without asking the server: for a shell prompt",
    },
    ...clientArgs,
  },
  examples: ["svc incident current", "PS1='$(svc incident current --short) $ '"],
  notes: ["SVC_INCIDENT or svc incident use sets it. If neither has, the command exits with 1."],
  async run({ short, json }, io) {
    const { readDefaultIncident } = await import("../../incident/default.ts");
    const variable = io.env.SVC_INCIDENT?.trim();
    const named = variable || readDefaultIncident(io.env)?.name;
    if (short) {
      if (!named) throw new ExitCode(1);
      io.stdout.write(json ? `${jsonText({ name: named })}\n` : `${printable(named, 100)}\n`);
      return;
    }
    const { IncidentClient } = await import("../../incident/incident.ts");
    const { titleOf } = await import("../../incident/text.ts");
    const incident = await IncidentClient.within(io, (client) => {
      const isOther = !variable && readDefaultIncident(io.env)?.server !== client.session.server.base;
      if (!named || isOther)
        throw new NotFound(`no incident of ${client.session.server.base} is in use: svc incident use ID`);
      return client.resolve(undefined);
    });
    if (json) printJson(io, incident);
    else io.stdout.write(`${incident.name}  ${incident.status}  ${titleOf(incident)}\n`);
  },
});
