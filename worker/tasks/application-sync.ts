import { followedApplications } from "../../core/sync/applications.ts";
import { followSources } from "../ask.ts";
import type { ScheduledTask } from "../task.ts";

/** Syncs the applications of each source. */
export const applicationSync: ScheduledTask = {
  run: (context) => followSources(context, context.plugins.ofType("application"), followedApplications),
};
