import { errorCode } from "../../../drizzle/database_error.ts";
import { Unavailable } from "../../../platform/errors.ts";
import type { ActivePlugin } from "../../plugin/call.ts";
import type { IncidentFacts, ResourceFacts } from "../../plugin/facts.ts";
import type { PluginType } from "../../plugin/methods.ts";
import type { StepRun } from "./ask.ts";

/** A conversation or a group, as its plugin knows it. */
export function resourceFacts(
  incident: IncidentFacts,
  { externalId, weblink }: { externalId: string | null; weblink: string | null },
): ResourceFacts {
  return { incident, ...(externalId !== null && { externalId }), ...(weblink !== null && { weblink }) };
}

/** Returns the plugin of a resource. @throws Unavailable when it is no longer enabled */
export function chosen<T extends PluginType>(
  { context }: Pick<StepRun, "context">,
  type: T,
  slug: string,
): ActivePlugin<T> {
  const plugin = context.plugins.find(type, slug);
  if (!plugin) throw new Unavailable(`${slug} is no longer enabled`);
  return plugin;
}

/** Whether PostgreSQL has refused a duplicate. */
export function isTaken(error: unknown): boolean {
  return errorCode((error as { cause?: unknown }).cause) === "23505";
}

/** For a `catch`: the plugin returned an id that it has given to another incident's resource. */
export function takenByAnother(slug: string): (error: unknown) => never {
  return (error) => {
    if (!isTaken(error)) throw error;
    throw new Unavailable(`${slug} returned a resource of another incident`, { cause: error });
  };
}
