import { followedTerms } from "../../core/sync/terms.ts";
import { Asking, followSources } from "../ask.ts";
import type { ScheduledTask } from "../task.ts";

/** Syncs the terms of each source and their definitions. */
export const termSync: ScheduledTask = {
  run: async (context) => {
    const asking = new Asking(context);
    const sources = context.plugins.ofType("term").map((plugin) => ({
      ...{ slug: plugin.slug, secrets: plugin.secrets },
      list: () => asking.ask(plugin, "list", {}),
    }));
    return await followSources(context, sources, followedTerms);
  },
};
