import { defineCommand } from "../../command.ts";
import { clientArgs, idArg, textArgs } from "../../incident/args.ts";
import { changeIncident } from "../../incident/change.ts";
import { IncidentClient } from "../../incident/incident.ts";
import { finish } from "../../incident/state.ts";
import { againLine, incidentOf, sending, sourceOf, withStdin, writtenText } from "../../incident/write.ts";

export default defineCommand({
  summary: "Close an incident",
  args: {
    ...idArg,
    resolution: { type: "string", short: "r", metavar: "TEXT", description: "How it was resolved" },
    ...textArgs("the resolution"),
    ...clientArgs,
  },
  examples: ['svc incident close -r "Rolled back to 1.4.2"', "svc incident close INC-44 -e"],
  notes: [
    "If somebody else has changed the incident in the meantime, both changes are kept; if they changed the same field, nothing is saved and both versions are shown.",
  ],
  async run({ id, json, resolution, file, editor }, io) {
    const source = sourceOf(resolution === undefined ? [] : [resolution], file, editor, "--resolution");
    const again = (incident = id) => againLine(io, ["close", incident]);
    const incident = await withStdin(io, "resolution", source, again(), async (io) => {
      const seen = await incidentOf(io, id);
      if (resolution === undefined && file === undefined && !editor) {
        if (seen.status === "Closed") return seen;
        return IncidentClient.within(io, (client) => changeIncident(client, seen, { status: "Closed" }));
      }
      const written = await writtenText(io, "resolution", source, seen);
      return sending(io, "resolution", written, again(seen.name), () =>
        IncidentClient.within(io, (client) =>
          changeIncident(client, seen, { status: "Closed", resolution: written.text }),
        ),
      );
    });
    finish(io, incident, json);
  },
});
