import type { Server } from "bun";
import { Elysia } from "elysia";
import { readSlice } from "../../core/incident/stream/read.ts";
import { noSuchIncident } from "../../core/incident/visibility/see.ts";
import { InvalidInput } from "../../platform/errors.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { problemSchema, refusalsWithin } from "../http/error.ts";
import { incidentParams } from "../incident/model.ts";
import { streamHeaders } from "./connection.ts";
import { boardAnswer, isCursor, lastEventId, streamAnswer, streamQuery } from "./model.ts";
import type { IncidentStreams } from "./streams.ts";

/** How long a client may take to read what is left of a stream that has ended. */
const unreadSeconds = 10;

/** Changes as they happen, as server-sent events. */
export const streamRoutes = (deps: Deps, streams: IncidentStreams) =>
  new Elysia({ name: "stream", prefix: "/incidents" })
    .use(actorMacro(deps))
    .get(
      "/stream",
      async ({ actor, request, server }) => {
        if (request.method === "HEAD") return new Response(null, { headers: streamHeaders });
        const stream = await streams.openBoard(actor, withoutTimeout(server, request));
        return new Response(stream, { headers: streamHeaders });
      },
      {
        actor: true,
        response: { 401: problemSchema },
        detail: { summary: "Follow changes of all incidents", responses: boardAnswer },
      },
    )
    .get(
      "/:incident_id/stream",
      async ({ actor, params, query, request, server }) => {
        const incidentId = Number(params.incident_id);
        const after = cursorOf(request.headers.get("last-event-id")) ?? cursorOf(query.after);
        const slice = await readSlice(deps.db, actor, incidentId, Number.MAX_SAFE_INTEGER);
        if (!slice) throw noSuchIncident();
        // Nobody would read a stream, and nothing would end it.
        if (request.method === "HEAD") return new Response(null, { headers: streamHeaders });
        const cursor = Math.min(after ?? slice.tail, slice.tail);
        const ended = withoutTimeout(server, request);
        return new Response(streams.openIncident(actor, incidentId, cursor, ended), {
          headers: streamHeaders,
        });
      },
      {
        actor: true,
        params: incidentParams,
        query: streamQuery,
        response: refusalsWithin,
        detail: {
          summary: "Follow the timeline of an incident",
          parameters: [lastEventId],
          responses: streamAnswer,
        },
      },
    );

/**
 * Removes Bun's timeout, which counts only what the client sends: heartbeats replace it.
 * @returns what sets it again at the end of the stream, for a client that does not read the rest
 */
export function withoutTimeout(server: Server<unknown> | null, request: Request): () => void {
  server?.timeout(request, 0);
  return () => server?.timeout(request, unreadSeconds);
}

/** Clients that have not seen an id yet may send an empty header. */
function cursorOf(text: string | null | undefined): number | undefined {
  if (text === null || text === undefined || text === "") return undefined;
  if (!isCursor(text))
    throw new InvalidInput("Last-Event-ID", "The header Last-Event-ID is not the id of an event");
  return Number(text);
}
