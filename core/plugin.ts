/**
 * The interface between plugins and the service. A plugin imports only this file and platform/errors.ts. A third-party
 * plugin needs neither, since a plugin is a plain object.
 *
 * - **plugin**: a named, versioned implementation of one kind of thing (its **type**), e.g. reading terms from a file
 * - **slug**: its unique name, in configuration and in the database
 * - **methods**: what `create` returns for a configuration, as required by the type
 * - **facts**: the plain data that methods get. None of them is a table row, so that a plugin survives a change of the
 * schema
 */

export { readAtMost } from "../platform/bounded_body.ts";
export { isRecord } from "../platform/record.ts";
export type { BuiltinDeps, Plugin, PluginDefinition, PluginDeps, PluginLog } from "./plugin/define.ts";
export { defineBuiltin, definePlugin } from "./plugin/define.ts";
export type * from "./plugin/facts.ts";
export type {
  ApplicationItem,
  ApplicationPlugin,
  CallContext,
  ConversationPlugin,
  CredentialPlugin,
  CredentialProblem,
  DocumentPlugin,
  DocumentResolverPlugin,
  DocumentTask,
  LeaseFacts,
  ParticipantGroupPlugin,
  ParticipantPlugin,
  PluginMethods,
  PluginType,
  RoleFacts,
  TermItem,
  TermPlugin,
  UnreadableItem,
} from "./plugin/methods.ts";
export { pluginTypes } from "./plugin/methods.ts";
