import { type Static, t } from "elysia";
import type { Message } from "../../core/incident/message/message.ts";
import { descriptionLength } from "../../platform/text.ts";
import { closed, id, instant, listQuery, nullable, pageOf } from "../http/schema.ts";
import { personView } from "../participant/model.ts";

export const messageView = t.Object(
  {
    id,
    at: instant,
    author: t.Union([personView, t.Null()], { description: "Null: the service itself" }),
    recipient: t.Union([personView, t.Null()], { description: "Null: everyone" }),
    text: t.String(),
  },
  closed,
);

export const messagePage = pageOf(messageView);

const { limit, cursor } = listQuery;

export const messageQuery = t.Object(
  { limit, cursor, sort: t.Optional(t.String({ description: "`at` or `-at` (default)" })) },
  closed,
);

export const newMessage = t.Object(
  {
    text: t.String({ minLength: 1, maxLength: descriptionLength }),
    recipient_id: t.Optional(
      nullable({ ...id, description: "The individual who alone gets the message; must be a participant" }),
    ),
  },
  closed,
);

export function viewOf({ at, ...message }: Message): Static<typeof messageView> {
  return { ...message, at: at.toISOString() };
}
