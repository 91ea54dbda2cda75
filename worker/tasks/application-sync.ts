import { followedApplications } from "../../core/sync/applications.ts";
import { Asking, followSources } from "../ask.ts";
import type { ScheduledTask } from "../task.ts";

/** Syncs the applications of each source. */
export const applicationSync: ScheduledTask = {
  run: async (context) => {
    const asking = new Asking(context);
    const sources = context.plugins.ofType("application").map((plugin) => ({
      ...{ slug: plugin.slug, secrets: plugin.secrets },
      list: () => asking.ask(plugin, "list", {}),
    }));
    return await followSources(context, sources, followedApplications);
  },
};
