import { t } from "elysia";
import { descriptionLength } from "../../platform/text.ts";
import { closed, id, instant, listQuery, nullable } from "../http/schema.ts";
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

export const messageQuery = listQuery("`at` or `-at` (default)");

export const newMessage = t.Object(
  {
    text: t.String({ minLength: 1, maxLength: descriptionLength }),
    recipient_id: t.Optional(
      nullable({ ...id, description: "The individual who alone gets the message; must be a participant" }),
    ),
  },
  closed,
);
