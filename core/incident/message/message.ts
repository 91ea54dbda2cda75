import { alias } from "drizzle-orm/pg-core";
import { conversationMessage, individual } from "../../../drizzle/schema/index.ts";
import { type Person, personColumns } from "../../catalog/person/person.ts";
import { type EntryState, entryStateOf } from "../timeline/entry.ts";

export interface Message extends EntryState {
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
  entry: entryStateOf("message.sent", conversationMessage.id),
};
