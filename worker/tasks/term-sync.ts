import { followedTerms } from "../../core/sync/terms.ts";
import { followSources } from "../ask.ts";
import type { ScheduledTask } from "../task.ts";

/** Syncs the terms of each source and their definitions. */
export const termSync: ScheduledTask = {
  run: (context) => followSources(context, context.plugins.ofType("term"), followedTerms),
};
