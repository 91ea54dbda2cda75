import { type Static, type TSchema, Type } from "@sinclair/typebox";
import type {
  DocumentFacts,
  IncidentFacts,
  Message,
  PersonFacts,
  ResourceFacts,
  ServiceFacts,
  TeamFacts,
} from "./facts.ts";

// What plugins answer, as schemas: a plugin is somebody else's code, so nothing of an answer is believed unchecked.
// Additional properties are dropped. NUL is refused since PostgreSQL keeps no text with it.

const text = (maxLength: number, minLength = 1) =>
  Type.String({ minLength, maxLength, pattern: "^[^\\u0000]*$" });
const externalId = text(500);
/** Shown as a link, so nothing but http(s): `javascript:` would run in the reader's browser. */
const weblink = Type.String({ maxLength: 2000, pattern: "^https?://[^\\s\\u0000-\\u001f]+$" });
const email = Type.String({ maxLength: 254, pattern: "^[^\\s@\\u0000]+@[^\\s@\\u0000]+$" });
/** Stands in keys, lists and logs: an id, and no address. */
const recipientId = Type.String({ minLength: 1, maxLength: 100, pattern: "^[\\w.:-]+$" });
const id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const list = <S extends TSchema>(item: S, maxItems: number) => Type.Array(item, { maxItems });
/** Items that their reader judges one by one (`readItem`), so that a bad one costs nothing but itself. */
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
  /** Stays the same while the task stands in its document. */
  externalId,
  description: text(2000),
  status: Type.Union([Type.Literal("Open"), Type.Literal("Resolved"), Type.Literal("Cancelled")]),
  creator: Type.Optional(email),
  owner: Type.Optional(email),
  assignees: list(email, 100),
  resolveBy: Type.Optional(due),
  /** It is gone from the document. */
  deleted: Type.Optional(Type.Boolean()),
});

export const termItem = Type.Object({
  /** Stays the same from one list to the next, so that a term that is written otherwise is still that term. */
  externalId,
  text: text(200),
  discoverable: Type.Optional(Type.Boolean()),
  /** The same `externalId` in two terms is one definition of both. */
  definitions: list(Type.Object({ externalId, text: text(10_000) }), 50),
});

export const applicationItem = Type.Object({
  externalId,
  name: text(200),
  description: Type.Optional(text(10_000, 0)),
  uri: Type.Optional(weblink),
});

/** Stands for a record that the source has and that cannot be read: it is named to operators, and is not gone. */
export const unreadableItem = Type.Object({
  /** Without it, nothing that is missing from the list counts as gone. */
  externalId: Type.Optional(Type.String()),
  /** Why. */
  unreadable: Type.String(),
});

/** What a credential is for: it decides in which formats a client can have it. */
export const credentialKinds = ["database", "aws", "ssh", "x509", "token"] as const;
const credentialKind = Type.Union(credentialKinds.map((kind) => Type.Literal(kind)));
const moment = Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z$" });
/** Why a role cannot be served, and what to type at the target. */
const problem = Type.Object({ problem: text(500), fix: Type.Optional(text(5000)) });

/** For methods that only do something: whatever they answer is dropped. */
const nothing = Type.Void();

/** Every type with its methods, and what each must answer. A schema under `optional` may be missing in a plugin. */
export const pluginMethods = {
  "document-resolver": {
    resolve: list(
      Type.Object({
        document: Type.Union([
          Type.Object({ id }),
          /** Made a document of ours if there is none with this link. */
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
      Type.Object({ name: text(200), weblink: Type.Optional(weblink), version: Type.Optional(text(200)) }),
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
      /** Whether there is nothing after this cursor for now. */
      complete: Type.Boolean(),
    }),
    move: stored,
    remove: nothing,
  },
  conversation: {
    create: resource,
    recipients: list(recipientId, 10_000),
    ...{ send: nothing, direct: nothing, add: nothing, remove: nothing },
    ...{ restrict: nothing, archive: nothing, reopen: nothing },
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
      /** When it ends at the target by itself, if that is before `expiresAt` of the call. */
      expiresAt: Type.Optional(moment),
      handle: Type.Optional(text(2000)),
    }),
    revoke: nothing,
    renew: Type.Object({ expiresAt: Type.Optional(moment) }),
    list: list(text(200), 100_000),
  },
} satisfies Record<string, Record<string, TSchema>>;

/** Methods that a plugin of the type may do without. */
export const optionalMethods: ReadonlySet<string> = new Set([
  "participant.onCall",
  "conversation.recipients",
  "conversation.remove",
  "conversation.restrict",
  "conversation.reopen",
  "credential.renew",
  "credential.list",
]);

export type PluginType = keyof typeof pluginMethods;
export const pluginTypes = Object.keys(pluginMethods) as PluginType[];

type Answers<T extends PluginType> = (typeof pluginMethods)[T];
type Answer<T extends PluginType, M extends keyof Answers<T>> = Answers<T>[M] extends infer S extends TSchema
  ? Static<S>
  : never;
/** May be answered at once or later. */
type Promised<T extends PluginType, M extends keyof Answers<T>> = Promise<Answer<T, M>> | Answer<T, M>;

/** What every call brings, beside what it is about. */
export interface CallContext {
  /** Aborts when nobody waits for the answer any more: pass it to `fetch`. */
  signal: AbortSignal;
  /** One for each thing that is to happen, and the same when it is tried again: a plugin does it once. */
  key: string;
}

/** Which of our documents, or which links, help in an incident. */
export interface DocumentResolverPlugin {
  resolve(call: { incident: IncidentFacts } & CallContext): Promised<"document-resolver", "resolve">;
}

/** Who is to take part in an incident. */
export interface ParticipantPlugin {
  resolve(call: { incident: IncidentFacts } & CallContext): Promised<"participant", "resolve">;
  /** Who is on call now, for services of this plugin; null when nobody is. */
  onCall?(call: { service: ServiceFacts; at: string } & CallContext): Promised<"participant", "onCall">;
}

/** Where the text of documents is. `version` is the plugin's word for a state of the text. */
export interface DocumentPlugin {
  /** From the text of `template`, with `{{name}}` replaced by `variables.name`; empty without a template. */
  create(
    call: {
      /** Our record of it: whoever keeps texts under ids of ours takes this one. */
      document: { id: number; name: string; resourceType: string };
      name: string;
      incident?: IncidentFacts;
      template?: DocumentFacts;
      variables: Readonly<Record<string, string>>;
    } & CallContext,
  ): Promised<"document", "create">;
  /** Null when it is gone. */
  get(call: { document: DocumentFacts } & CallContext): Promised<"document", "get">;
  /** Replaces what is given. With `version` only if the text is still that one (otherwise it throws). */
  update(
    call: { document: DocumentFacts; name?: string; text?: string; version?: string } & CallContext,
  ): Promised<"document", "update">;
  /** Null when it is gone. */
  text(call: { document: DocumentFacts } & CallContext): Promised<"document", "text">;
  /** What has changed since `cursor`, which was given out before; without one, everything. */
  tasks(call: { document: DocumentFacts; cursor?: string } & CallContext): Promised<"document", "tasks">;
  move(call: { document: DocumentFacts; folder: string } & CallContext): Promised<"document", "move">;
  /** That it is gone already is no failure. */
  remove(call: { document: DocumentFacts } & CallContext): Promised<"document", "remove">;
}

/** Where an incident is talked about. */
export interface ConversationPlugin {
  create(call: { incident: IncidentFacts } & CallContext): Promised<"conversation", "create">;
  /**
   * Who is in it now, each by an id that stays the same: for a plugin that sends to each by itself, as mail does, and may
   * fail for some of them. `send` is then called for each, and tried again for those alone for whom it failed.
   */
  recipients?(call: { conversation: ResourceFacts } & CallContext): Promised<"conversation", "recipients">;
  /**
   * To everyone in it; of a plugin with `recipients`, to the one that is named: if it is still in it, and refused for
   * good (`permanent`) if not.
   */
  send(
    call: { conversation: ResourceFacts; message: Message; recipient?: string } & CallContext,
  ): Promised<"conversation", "send">;
  /** To one person alone. */
  direct(
    call: { person: PersonFacts; message: Message; incident?: IncidentFacts } & CallContext,
  ): Promised<"conversation", "direct">;
  /** Everybody who takes part now, also those who are in it already. */
  add(
    call: { conversation: ResourceFacts; people: readonly PersonFacts[] } & CallContext,
  ): Promised<"conversation", "add">;
  /**
   * Everybody who has left, also those who are out of it already, and also when it is archived. Without it, who left may
   * read on, and the timeline says so.
   */
  remove?(
    call: { conversation: ResourceFacts; people: readonly PersonFacts[] } & CallContext,
  ): Promised<"conversation", "remove">;
  /**
   * Its incident, which was Open when it was made, is Restricted: from now on only `people`, who take part, may read it.
   * Without it, nothing more is sent to the conversation as long as the incident is Restricted.
   */
  restrict?(
    call: { conversation: ResourceFacts; people: readonly PersonFacts[] } & CallContext,
  ): Promised<"conversation", "restrict">;
  archive(call: { conversation: ResourceFacts } & CallContext): Promised<"conversation", "archive">;
  /** Its incident goes on. Those who take part are added afterwards. Without it, what is archived stays so. */
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
 * All terms of a source. What is missing from the list counts as gone, so half a list is a failure: throw. A single record
 * that cannot be read is listed as such (`unreadable`), or as it is.
 */
export interface TermPlugin {
  list(call: CallContext): Promised<"term", "list">;
}

/** All applications of a source; half a list is a failure here, too. */
export interface ApplicationPlugin {
  list(call: CallContext): Promised<"application", "list">;
}

/** An access role as its plugin is told of it: `settings` are those of its `roleSchema`, secrets included. */
export interface RoleFacts {
  slug: string;
  settings: Readonly<Record<string, string | number | boolean>>;
}

/** One credential: `name` is what it is called at the target, and the same in every call about it. */
export interface LeaseFacts {
  leaseId: number;
  name: string;
  role: RoleFacts;
}

/**
 * Issues credentials that end. svc remembers each lease before it asks for one, so whatever happens, `revoke` is called for
 * it in the end: a plugin needs no memory of its own.
 */
export interface CredentialPlugin {
  /** What keeps the role from being served; nothing when all is well. */
  check(call: { role: RoleFacts } & CallContext): Promised<"credential", "check">;
  /** After `signal` has aborted it must create nothing any more. */
  issue(
    call: LeaseFacts & {
      user: string;
      /** The name of the incident that it is for. */
      incident?: string;
      /** When it has to end, and how many seconds that is: the clock of the target may be another. */
      expiresAt: string;
      seconds: number;
      /** Of the client, where the kind needs one. */
      publicKey?: string;
    } & CallContext,
  ): Promised<"credential", "issue">;
  /**
   * Ends it. Knows it by its name alone where there is no `handle` because nobody can say whether it was issued; that
   * there is none is no failure.
   */
  revoke(call: LeaseFacts & { handle?: string } & CallContext): Promised<"credential", "revoke">;
  /** Without it, a lease cannot be renewed. */
  renew?(
    call: LeaseFacts & { handle?: string; expiresAt: string; seconds: number } & CallContext,
  ): Promised<"credential", "renew">;
  /** The names of all that svc has issued at the role's target and that is still there. */
  list?(call: { role: RoleFacts } & CallContext): Promised<"credential", "list">;
}

/** What `create` of a plugin of each type returns. */
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
/** What a method is about: its argument without what every call brings. */
export type MethodInput<T extends PluginType, M extends MethodName<T>> = Omit<
  Parameters<Method<T, M>>[0],
  keyof CallContext
>;
export type MethodAnswer<T extends PluginType, M extends MethodName<T>> = Answer<T, M>;
