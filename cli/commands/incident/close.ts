import { defineCommand } from "../../command.ts";
import { clientArgs, idDashArgs, textArgs, textOption } from "../../incident/args.ts";
import { changeIncident, type IncidentFields } from "../../incident/change.ts";
import { keyOfSeen, wasSeen } from "../../incident/drafts.ts";
import { IncidentClient } from "../../incident/incident.ts";
import { finish } from "../../incident/state.ts";
import {
  againLine,
  followTheirs,
  idOf,
  incidentOf,
  sending,
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
    "If somebody else has changed the incident in the meantime, both changes are kept; if they changed the same field, nothing is saved, and svc shows where both versions differ.",
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
      const now = textsOf(seen);
      const written = await writtenText(io, "resolution", source, seen, again(seen.name), keyOfSeen(now));
      const before = wasSeen(written.key, now[0]!) === false ? { status: seen.status } : undefined;
      const change = { status: "Closed", resolution: written.text } as const;
      return sending(io, "resolution", written, again(seen.name), () =>
        IncidentClient.within(io, (client) => changeIncident(client, seen, change, {}, before)).catch(
          followTheirs<IncidentFields>(io, written, textsOf),
        ),
      );
    });
    await finish(io, incident, json);
  },
});

/** What a resolution is compared with to find out who has changed it. */
function textsOf({ resolution }: Partial<IncidentFields>) {
  return [resolution === null ? "" : resolution];
}
