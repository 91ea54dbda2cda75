/**
 * What a plugin and the service know of each other. A plugin imports this file and platform/errors.ts, and nothing else of
 * ours; one of a third party needs neither, since a plugin is a plain object.
 *
 * - **plugin**: a named, versioned way to do one kind of thing (its **type**), e.g. to read terms from a file
 * - **slug**: its one name, in configuration and in the database
 * - **methods**: what `create` returns for a configuration; which ones is said by the type
 * - **facts**: the plain data that methods are handed. None of them is a row of a table, so a plugin outlives a change
 *   of the schema
 */

export type { BuiltinDeps, Plugin, PluginDefinition, PluginDeps, PluginLog } from "./plugin/define.ts";
export { defineBuiltin, definePlugin } from "./plugin/define.ts";
export type * from "./plugin/facts.ts";
export type {
  ApplicationItem,
  ApplicationPlugin,
  CallContext,
  ConversationPlugin,
  CredentialPlugin,
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
