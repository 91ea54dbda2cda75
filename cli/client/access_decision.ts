import type { Io } from "../io.ts";
import { jsonText } from "../text.ts";

export const idArgument = {
  id: { type: "positional", metavar: "ID", description: "The id of the request (svc access requests)" },
} as const;

const done = { approve: "Approved", deny: "Denied", cancel: "Cancelled", review: "Reviewed" } as const;

/** Runs a command that decides on a request. */
export async function decideWith(
  io: Io,
  verb: keyof typeof done,
  id: string,
  { server, json }: { server?: string; json?: boolean },
  note?: string,
): Promise<void> {
  const [{ AccessClient, parseId }, { printable }] = await Promise.all([
    import("./access.ts"),
    import("../text.ts"),
  ]);
  type AccessRequest = import("./access.ts").AccessRequest;
  const path = `/access/requests/${parseId(id)}/${verb}`;
  const request = await AccessClient.within(io, server, (client) =>
    client.call<AccessRequest>("POST", path, note === undefined ? undefined : { note }),
  );
  const { user, role } = request;
  io.stdout.write(
    json ? `${jsonText(request)}\n` : `${done[verb]}: ${printable(user)} and ${printable(role)}\n`,
  );
}
