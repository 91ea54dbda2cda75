import { t } from "elysia";
import { closed, cursorPattern } from "../http/schema.ts";

export const isCursor = (text: string): boolean => new RegExp(cursorPattern).test(text);

export const streamQuery = t.Object(
  {
    after: t.Optional(
      t.String({
        pattern: cursorPattern,
        description:
          "Start after the event with this id, or with `0` at the first. By default, the stream starts with the next event",
      }),
    ),
  },
  closed,
);

/** A response in the OpenAPI document, which cannot describe the events of a stream. */
const answerOf = (description: string) => ({
  200: { description, content: { "text/event-stream": { schema: { type: "string" as const } } } },
});

export const streamAnswer = answerOf(
  "Server-sent events. Each has the event's id as `id`, `event` as `event`, and as `data` the same JSON as in `GET /incidents/{incident_id}/events/`",
);

export const boardAnswer = answerOf(
  "Server-sent events. Each has `incident` as `event`, and as `data` the `id` and `name` of an incident that has changed or that the user can no longer read",
);

export const lastEventId = {
  name: "Last-Event-ID",
  in: "header" as const,
  description: "The id of the last event that the client received; it takes precedence over `after`",
  schema: { type: "string" as const, pattern: cursorPattern },
};
