import type { Io } from "../io.ts";
import { jsonText, printable } from "../text.ts";
import { AccessClient, type AccessRequest, parseId } from "./access.ts";

export const idArgument = {
  id: { type: "positional", metavar: "ID", description: "The id of the request (svc access requests)" },
} as const;

const done = { approve: "Approved", deny: "Denied", cancel: "Cancelled", review: "Reviewed" } as const;

/** Runs a command that decides on a request. */
export async function decideWith(
  io: Io,
  verb: keyof typeof done,
  id: string,
  { json }: { json?: boolean },
  note?: string,
): Promise<void> {
  const path = `/access/requests/${parseId(id)}/${verb}`;
  const request = await AccessClient.within(io, (client) =>
    client.call<AccessRequest>("POST", path, note === undefined ? undefined : { note }),
  );
  const text = `${done[verb]}: ${printable(request.role)} for ${printable(request.user)}`;
  io.stdout.write(`${json ? jsonText(request) : text}\n`);
}
