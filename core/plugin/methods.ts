import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { nameLength } from "../../platform/text.ts";
import type {
  DocumentFacts,
  IncidentFacts,
  Message,
  PersonFacts,
  Place,
  ResourceFacts,
  ServiceFacts,
  TeamFacts,
} from "./facts.ts";

// Schemas of the plugins' answers: a plugin is third-party code, so every answer is checked. Additional properties are
// dropped. NUL is refused because PostgreSQL cannot store it in text.

const text = (maxLength: number, minLength = 1) =>
  Type.String({ minLength, maxLength, pattern: "^[^\\u0000]*$" });
const externalId = text(500);
/** Shown as a link, so only http(s): `javascript:` would run in the reader's browser. */
const weblink = Type.String({ maxLength: 2000, pattern: "^https?://[^\\s\\u0000-\\u001f]+$" });
const email = Type.String({ maxLength: 254, pattern: "^[^\\s@\\u0000]+@[^\\s@\\u0000]+$" });
/** Used in keys, lists and logs, so an id, not an address. */
const recipientId = Type.String({ minLength: 1, maxLength: 100, pattern: "^[\\w.:-]+$" });
const id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const list = <S extends TSchema>(item: S, maxItems: number) => Type.Array(item, { maxItems });
/** Items that the reader validates one by one (`readItem`), so that an invalid one affects only itself. */
const each = <I>(maxItems: number) => list(Type.Unsafe<I>(Type.Unknown()), maxItems);
/** A day, or an instant with its offset. */
const due = Type.String({
  pattern: "^\\d{4}-\\d\\d-\\d\\d(T\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?(Z|[+-]\\d\\d:\\d\\d))?$",
});

const reasons = list(
  Type.Object({
    kind: Type.Union(
      (["incident_type", "incident_priority", "term", "service", "other"] as const).map((kind) =>
        Type.Literal(kind),
      ),
    ),
    id: Type.Optional(id),
    name: text(500),
  }),
  50,
);
const person = Type.Object({ email, name: Type.Optional(text(200)) });
const resource = Type.Object({
  externalId: Type.Optional(externalId),
  weblink: Type.Optional(weblink),
});
const stored = Type.Object({ resourceId: externalId, weblink: Type.Optional(weblink) });

export const documentTask = Type.Object({
  /** Stays the same as long as the task is in its document. */
  externalId,
  description: text(2000),
  status: Type.Union([Type.Literal("Open"), Type.Literal("Resolved"), Type.Literal("Cancelled")]),
  creator: Type.Optional(email),
  owner: Type.Optional(email),
  assignees: list(email, 100),
  resolveBy: Type.Optional(due),
  /** The task is no longer in the document. */
  deleted: Type.Optional(Type.Boolean()),
});

export const termItem = Type.Object({
  /** Stays the same from one list to the next, so that a respelt term remains the same term. */
  externalId,
  text: text(200),
  discoverable: Type.Optional(Type.Boolean()),
  /** The same `externalId` in two terms is one definition shared by both. */
  definitions: list(Type.Object({ externalId, text: text(10_000) }), 50),
});

export const applicationItem = Type.Object({
  externalId,
  name: text(200),
  description: Type.Optional(text(10_000, 0)),
  uri: Type.Optional(weblink),
});

/** Stands for a record that exists in the source but cannot be read. It is reported to operators and not removed. */
export const unreadableItem = Type.Object({
  /** If it is missing, records that are absent from the list are not removed. */
  externalId: Type.Optional(Type.String()),
  /** The reason. */
  unreadable: Type.String(),
});

/** The kind of a credential, which determines the formats that a client can get. */
export const credentialKinds = ["database", "aws", "ssh", "x509", "token"] as const;
const credentialKind = Type.Union(credentialKinds.map((kind) => Type.Literal(kind)));
const moment = Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z$" });
/** Why a role cannot be served, and what to run on the target. */
const problem = Type.Object({
  problem: text(500),
  fix: Type.Optional(text(5000)),
  /** It does not prevent the use of the role. */
  warning: Type.Optional(Type.Boolean()),
});

/** For methods without a result. Any answer is dropped. */
const nothing = Type.Void();

/** For methods that may answer. Any other answer is dropped. */
const optional = <S extends TSchema>(schema: S) =>
  // biome-ignore lint/suspicious/noConfusingVoidType: most methods return nothing
  Type.Unsafe<Static<S> | void>({ ...schema, dropped: true });

/** Every type with its methods, and the schema of each answer. */
export const pluginMethods = {
  "document-resolver": {
    resolve: list(
      Type.Object({
        document: Type.Union([
          Type.Object({ id }),
          /** Becomes a document of ours unless one has this link. */
          Type.Object({ name: text(200), weblink }),
        ]),
        reasons,
      }),
      200,
    ),
  },
  participant: {
    resolve: list(
      Type.Union([
        Type.Object({ individual: Type.Union([Type.Object({ id }), person]), reasons }),
        Type.Object({ team: Type.Object({ id }), reasons }),
      ]),
      500,
    ),
    onCall: Type.Union([person, Type.Null()]),
  },
  document: {
    create: stored,
    get: Type.Union([
      // As long as the name of a document, which our own plugin returns.
      Type.Object({
        name: text(nameLength),
        weblink: Type.Optional(weblink),
        version: Type.Optional(text(200)),
      }),
      Type.Null(),
    ]),
    update: Type.Object({ version: Type.Optional(text(200)) }),
    text: Type.Union([
      Type.Object({ text: text(2_000_000, 0), version: Type.Optional(text(200)) }),
      Type.Null(),
    ]),
    tasks: Type.Object({
      tasks: each<Static<typeof documentTask>>(1000),
      cursor: text(2000),
      /** Whether there is nothing after this cursor yet. */
      complete: Type.Boolean(),
    }),
    move: stored,
    remove: nothing,
  },
  conversation: {
    create: resource,
    recipients: list(recipientId, 10_000),
    send: nothing,
    direct: nothing,
    edit: nothing,
    withdraw: nothing,
    add: nothing,
    remove: nothing,
    restrict: nothing,
    archive: nothing,
    reopen: nothing,
  },
  participant_group: {
    create: Type.Object({ ...resource.properties, email: Type.Optional(email) }),
    add: nothing,
    remove: nothing,
    members: list(person, 10_000),
  },
  term: { list: each<Static<typeof termItem> | UnreadableItem>(100_000) },
  application: { list: each<Static<typeof applicationItem> | UnreadableItem>(100_000) },
  credential: {
    check: list(problem, 50),
    issue: Type.Object({
      kind: credentialKind,
      fields: Type.Record(Type.String({ pattern: "^[a-z][a-z0-9_]{0,39}$" }), text(20_000, 0)),
      /** When it ends at the target, if that is before the call's `expiresAt`. */
      expiresAt: Type.Optional(moment),
      handle: Type.Optional(text(2000)),
    }),
    revoke: optional(Type.Object({ left: list(text(500), 100) })),
    renew: Type.Object({ expiresAt: Type.Optional(moment) }),
    list: list(text(200), 100_000),
    explain: list(text(500), 100),
  },
} satisfies Record<string, Record<string, TSchema>>;

/** Methods that a plugin of the type may omit. */
export const optionalMethods: ReadonlySet<string> = new Set([
  "participant.onCall",
  "conversation.recipients",
  "conversation.edit",
  "conversation.withdraw",
  "conversation.remove",
  "conversation.restrict",
  "conversation.reopen",
  "credential.renew",
  "credential.list",
  "credential.explain",
]);

export type PluginType = keyof typeof pluginMethods;
export const pluginTypes = Object.keys(pluginMethods) as PluginType[];

type Answers<T extends PluginType> = (typeof pluginMethods)[T];
type Answer<T extends PluginType, M extends keyof Answers<T>> = Answers<T>[M] extends infer S extends TSchema
  ? Static<S>
  : never;
/** Synchronous or asynchronous. */
type Promised<T extends PluginType, M extends keyof Answers<T>> = Promise<Answer<T, M>> | Answer<T, M>;

/** What every call gets besides its own arguments. */
export interface CallContext {
  /** Aborts when the answer is no longer needed: pass it to `fetch`. */
  signal: AbortSignal;
  /** Identifies one operation and stays the same when it is retried: a plugin performs it once. */
  key: string;
}

/** Finds which of our documents, or which links, help in an incident. */
export interface DocumentResolverPlugin {
  resolve(call: { incident: IncidentFacts } & CallContext): Promised<"document-resolver", "resolve">;
}

/** Finds who should take part in an incident. */
export interface ParticipantPlugin {
  resolve(call: { incident: IncidentFacts } & CallContext): Promised<"participant", "resolve">;
  /** Who is on call now for services of this plugin, or null if nobody is. */
  onCall?(call: { service: ServiceFacts; at: string } & CallContext): Promised<"participant", "onCall">;
}

interface Written {
  /** Who writes the text: a user name, `worker` or `system`. */
  author?: string;
}

/** Stores the text of documents. `version` is the plugin's identifier of a state of the text. */
export interface DocumentPlugin {
  /** From the text of `template`, with `{{name}}` replaced by `variables.name`. Empty without a template. */
  create(
    call: {
      /** Our record of it: a plugin that stores texts under our ids uses this one. */
      document: { id: number; name: string; resourceType: string };
      name: string;
      incident?: IncidentFacts;
      template?: DocumentFacts;
      variables: Readonly<Record<string, string>>;
    } & Written &
      CallContext,
  ): Promised<"document", "create">;
  /** Null when it is gone. */
  get(call: { document: DocumentFacts } & CallContext): Promised<"document", "get">;
  /** Replaces what is given. With `version`, only if the text is still at that version. Otherwise it throws. */
  update(
    call: { document: DocumentFacts; name?: string; text?: string; version?: string } & Written & CallContext,
  ): Promised<"document", "update">;
  /** Null when it is gone. */
  text(call: { document: DocumentFacts } & CallContext): Promised<"document", "text">;
  /** The changes since `cursor`, which an earlier answer gave. Everything without one. */
  tasks(call: { document: DocumentFacts; cursor?: string } & CallContext): Promised<"document", "tasks">;
  move(call: { document: DocumentFacts; folder: string } & CallContext): Promised<"document", "move">;
  /** Succeeds if it is already gone. */
  remove(call: { document: DocumentFacts } & CallContext): Promised<"document", "remove">;
}

/** Where people discuss an incident. */
export interface ConversationPlugin {
  create(call: { incident: IncidentFacts } & CallContext): Promised<"conversation", "create">;
  /**
   * The current members, each by a stable id. For a plugin that sends to each member separately, as mail does, and may
   * fail for some of them: `send` is then called for each, and retried only for those that failed.
   */
  recipients?(call: { conversation: ResourceFacts } & CallContext): Promised<"conversation", "recipients">;
  /**
   * Sends to everyone in it. If the plugin has `recipients`, sends only to the named one, and fails with `permanent` if
   * that one is no longer in it.
   */
  send(
    call: { conversation: ResourceFacts; message: Message; recipient?: string } & Place & CallContext,
  ): Promised<"conversation", "send">;
  /** Sends to one person. */
  direct(
    call: { person: PersonFacts; message: Message; incident?: IncidentFacts } & Place & CallContext,
  ): Promised<"conversation", "direct">;
  /**
   * Replaces a message that `send` has sent. `original` is the key of that call, for the same recipient. Without this
   * method, `send` says what has changed.
   */
  edit?(
    call: { conversation: ResourceFacts; original: string; message: Message; recipient?: string } & Place &
      CallContext,
  ): Promised<"conversation", "edit">;
  /** Removes such a message. Without this method, `send` says that it was withdrawn. */
  withdraw?(
    call: { conversation: ResourceFacts; original: string; recipient?: string } & Place & CallContext,
  ): Promised<"conversation", "withdraw">;
  /** Adds everyone who takes part now, including those already in it. */
  add(
    call: { conversation: ResourceFacts; people: readonly PersonFacts[] } & CallContext,
  ): Promised<"conversation", "add">;
  /**
   * Removes everyone who has left, including those already removed, and also when it is archived. Without this method,
   * people who left can still read, and the timeline says so.
   */
  remove?(
    call: { conversation: ResourceFacts; people: readonly PersonFacts[] } & CallContext,
  ): Promised<"conversation", "remove">;
  /**
   * The incident was Open when the conversation was created and is now Restricted: from now on only `people`, the
   * participants, may read it. Without this method, nothing is sent to the conversation while the incident is
   * Restricted.
   */
  restrict?(
    call: { conversation: ResourceFacts; people: readonly PersonFacts[] } & CallContext,
  ): Promised<"conversation", "restrict">;
  archive(call: { conversation: ResourceFacts } & CallContext): Promised<"conversation", "archive">;
  /**
   * The incident continues. Its participants are added afterwards. Without this method, an archived conversation stays
   * archived.
   */
  reopen?(call: { conversation: ResourceFacts } & CallContext): Promised<"conversation", "reopen">;
}

/** The participants of an incident as one address. */
export interface ParticipantGroupPlugin {
  create(
    call: { incident: IncidentFacts; name: string } & CallContext,
  ): Promised<"participant_group", "create">;
  add(
    call: {
      group: ResourceFacts;
      people: readonly PersonFacts[];
      teams: readonly TeamFacts[];
    } & CallContext,
  ): Promised<"participant_group", "add">;
  remove(
    call: {
      group: ResourceFacts;
      people: readonly PersonFacts[];
      teams: readonly TeamFacts[];
    } & CallContext,
  ): Promised<"participant_group", "remove">;
  members(call: { group: ResourceFacts } & CallContext): Promised<"participant_group", "members">;
}

/**
 * All terms of a source. Terms that are missing from the list are removed, so throw rather than return a partial list.
 * List a single record that cannot be read as `unreadable`, or as it is.
 */
export interface TermPlugin {
  list(call: CallContext): Promised<"term", "list">;
}

/** All applications of a source. Here, too, throw rather than return a partial list. */
export interface ApplicationPlugin {
  list(call: CallContext): Promised<"application", "list">;
}

/** An access role. `settings` contains the values of its `roleSchema`, including secrets. */
export interface RoleFacts {
  slug: string;
  /** Identifies this installation of svc. Several may share a target, and must not change each other's credentials. */
  installation: string;
  settings: Readonly<Record<string, string | number | boolean>>;
}

/** One credential. `name` identifies it at the target, and is the same in every call about it. */
export interface LeaseFacts {
  leaseId: number;
  name: string;
  role: RoleFacts;
}

/**
 * Issues temporary credentials. svc records each lease before it calls `issue`, and always calls `revoke` for it, so a
 * plugin needs no state.
 */
export interface CredentialPlugin {
  /** The problems that prevent the use of the role, or an empty list. */
  check(call: { role: RoleFacts } & CallContext): Promised<"credential", "check">;
  /** Must not create anything after `signal` has aborted. */
  issue(
    call: LeaseFacts & {
      user: string;
      /** The name of the incident that it is issued for. */
      incident?: string;
      /** When it must end, and in how many seconds, because the target's clock may differ. */
      expiresAt: string;
      seconds: number;
      /** The client's public key, if the kind needs one. */
      publicKey?: string;
    } & CallContext,
  ): Promised<"credential", "issue">;
  /**
   * Revokes the credential. Succeeds if it does not exist. Without `handle`, it is unknown whether it was issued: find it by
   * its name. The settings of the role may have changed since. `left` describes what may outlive the credential. Throws an
   * error with `permanent` when a person has to decide something first: the call is then repeated less often.
   */
  revoke(
    call: LeaseFacts & { handle?: string; expiresAt: string } & CallContext,
  ): Promised<"credential", "revoke">;
  /** Without this method, a lease cannot be renewed. */
  renew?(
    call: LeaseFacts & { handle?: string; expiresAt: string; seconds: number } & CallContext,
  ): Promised<"credential", "renew">;
  /** The names of all credentials that this installation issued at the role's target and that still exist. */
  list?(call: { role: RoleFacts } & CallContext): Promised<"credential", "list">;
  /** Describes what `revoke` would hand over or drop, and what would prevent it. It changes nothing. */
  explain?(call: LeaseFacts & { handle?: string } & CallContext): Promised<"credential", "explain">;
}

/** What `create` of each plugin type returns. */
export interface PluginMethods {
  "document-resolver": DocumentResolverPlugin;
  participant: ParticipantPlugin;
  document: DocumentPlugin;
  conversation: ConversationPlugin;
  participant_group: ParticipantGroupPlugin;
  term: TermPlugin;
  application: ApplicationPlugin;
  credential: CredentialPlugin;
}

export type CredentialProblem = Static<typeof problem>;
export type DocumentTask = Static<typeof documentTask>;
export type UnreadableItem = Static<typeof unreadableItem>;
export type TermItem = Static<typeof termItem>;
export type ApplicationItem = Static<typeof applicationItem>;

export type MethodName<T extends PluginType> = keyof PluginMethods[T] & keyof Answers<T> & string;
type Method<T extends PluginType, M extends MethodName<T>> = Extract<
  PluginMethods[T][M],
  // biome-ignore lint/suspicious/noExplicitAny: any method, whatever it takes
  (call: any) => unknown
>;
/** A method's argument without what every call gets. */
export type MethodInput<T extends PluginType, M extends MethodName<T>> = Omit<
  Parameters<Method<T, M>>[0],
  keyof CallContext
>;
export type MethodAnswer<T extends PluginType, M extends MethodName<T>> = Answer<T, M>;
