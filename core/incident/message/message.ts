import { alias } from "drizzle-orm/pg-core";
import { conversationMessage, individual } from "../../../drizzle/schema/index.ts";
import { type Person, personColumns } from "../../catalog/person/person.ts";

export interface Message {
  id: number;
  at: Date;
  /** Null: the service itself. */
  author: Person | null;
  /** Null: for everyone. */
  recipient: Person | null;
  text: string;
}

export const recipient = alias(individual, "recipient");

/** From `conversationMessage` with its author and its recipient, which may be missing. */
export const messageColumns = {
  id: conversationMessage.id,
  at: conversationMessage.at,
  author: personColumns,
  recipient: { id: recipient.id, name: recipient.name, email: recipient.email },
  text: conversationMessage.text,
};
