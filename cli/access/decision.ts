import { clientArgs } from "../client/args.ts";
import { type CommandDefinition, defineCommand } from "../command.ts";
import { optionText } from "../incident/written_text.ts";
import { jsonText, printable } from "../text.ts";
import { AccessClient, type AccessRequest, approvalsText, parseId } from "./access.ts";

const done = { approve: "Approved", deny: "Denied", cancel: "Cancelled", review: "Reviewed" } as const;

const noteArg = {
  note: {
    type: "string",
    short: "n",
    metavar: "TEXT",
    description: "A note for the requester; - reads stdin",
  },
} as const;

/** A command that decides on a request. */
export function decisionCommand(
  verb: keyof typeof done,
  summary: string,
  { takesNote = false } = {},
): CommandDefinition {
  return defineCommand({
    summary,
    args: {
      id: { type: "positional", metavar: "ID", description: "The id of the request (svc access requests)" },
      ...((takesNote ? noteArg : {}) as typeof noteArg),
      ...clientArgs,
    },
    examples: [`svc access ${verb} 7`],
    async run({ id, note: typed, json }, io) {
      const note = typed === undefined ? undefined : await optionText(io, typed, "note");
      const path = `/access/requests/${parseId(id)}/${verb}`;
      const request = await AccessClient.within(io, (client) =>
        client.call<AccessRequest>("POST", path, note === undefined ? undefined : { note }),
      );
      const count = verb === "approve" ? approvalsText(request) : "";
      const text = `${done[verb]}: ${printable(request.role)} for ${printable(request.user)}${count && ` (${count})`}`;
      io.stdout.write(`${json ? jsonText(request) : text}\n`);
    },
  });
}
