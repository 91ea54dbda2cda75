import type { MethodName } from "../../core/plugin/methods.ts";
import type { PluginType } from "../../core/plugin.ts";
import { type Fake, type FakeOptions, fakePlugin, type Script } from "./fake.ts";

// One of each type. Without a script, every call is unexpected.

const fakeOf =
  <T extends PluginType>(type: T, ...methods: MethodName<T>[]) =>
  (script: Script<T> = {}, options: FakeOptions = {}): Fake<T> =>
    fakePlugin(type, methods, script, options);

export const fakeDocumentResolver = fakeOf("document-resolver", "resolve");

export const fakeParticipant = fakeOf("participant", "resolve", "onCall");

export const fakeDocument = fakeOf("document", "create", "get", "update", "text", "tasks", "move", "remove");

const common = ["create", "send", "direct", "add", "archive"] as const;

export const fakeConversation = fakeOf("conversation", ...common);

/** A conversation plugin with the optional method `reopen`. */
export const fakeReopening = fakeOf("conversation", ...common, "reopen");

/** A conversation plugin that edits and withdraws messages. */
export const fakeEditing = fakeOf("conversation", ...common, "edit", "withdraw");

/** A conversation plugin with several optional methods. */
export const fakeChat = fakeOf("conversation", ...common, "remove", "restrict", "reopen");

/** A conversation plugin with those methods that also sends to each recipient separately. */
export const fakeMailing = fakeOf("conversation", ...common, "recipients", "remove", "restrict", "reopen");

export const fakeParticipantGroup = fakeOf("participant_group", "create", "add", "remove", "members");

export const fakeTerm = fakeOf("term", "list");

export const fakeApplication = fakeOf("application", "list");

export const fakeCredential = fakeOf("credential", "check", "issue", "revoke", "renew", "list", "explain");
