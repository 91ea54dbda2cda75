import { defineCommand } from "../../command.ts";
import { clientArgs, idDashArgs, textArgs, textOption } from "../../incident/args.ts";
import { changeIncident, fieldsOf, resolutionOf } from "../../incident/change.ts";
import { type Incident, IncidentClient } from "../../incident/incident.ts";
import { replaceText } from "../../incident/replace_text.ts";
import { finish } from "../../incident/state.ts";
import {
  againLine,
  idOf,
  incidentOf,
  sourceOf,
  withStdin,
  wordAndDash,
  writtenText,
} from "../../incident/write.ts";

export default defineCommand({
  summary: "Close an incident",
  args: {
    ...idDashArgs,
    resolution: textOption("r", "How it was resolved"),
    ...textArgs("the resolution"),
    ...clientArgs,
  },
  examples: ['svc incident close -r "Rolled back to 1.4.2"', "svc incident close INC-44 -e"],
  notes: [
    "If somebody else has changed the incident in the meantime, both changes are kept, and two resolutions are merged; if they changed the same lines, your editor opens with both versions. Without a terminal, nothing is saved, and svc keeps both versions in a file.",
  ],
  async run({ json, resolution, editor, ...options }, io) {
    const { word, file } = wordAndDash(options.id, options.dash, { ...options, editor });
    const id = idOf({ ...options, id: word });
    const source = sourceOf(resolution, file, editor, "--resolution");
    const again = (incident = id) => againLine(io, ["close", incident]);
    const incident = await withStdin(io, "resolution", source, again(), async (io) => {
      const seen = await incidentOf(io, id);
      if (resolution === undefined && file === undefined && !editor) {
        if (seen.status === "Closed") return seen;
        return IncidentClient.within(io, (client) => changeIncident(client, seen, { status: "Closed" }));
      }
      const base = seen.resolution ?? "";
      const written = await writtenText(io, "resolution", source, seen, again(seen.name), base);
      return replaceText<Incident, Incident>(io, "resolution", written, again(seen.name), seen, {
        ...resolutionOf(io, seen),
        put: (resolution, now) =>
          IncidentClient.within(io, (client) => {
            const before = { ...fieldsOf(now), status: seen.status };
            return changeIncident(client, now, { status: "Closed", resolution }, {}, before);
          }),
      });
    });
    await finish(io, incident, json);
    if (!json && io.stdout.isTTY) io.stderr.write(`Next: svc incident postmortem ${incident.name}\n`);
  },
});
