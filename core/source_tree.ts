import type { Revision } from "./revision/read.ts";

/** Written into the single executable by scripts/build.ts, which has no source tree to read. */
declare const SVC_REVISIONS: Revision[] | undefined;

/** The revisions that the single executable was built with; undefined where there is the source tree. */
export const builtInRevisions = typeof SVC_REVISIONS === "undefined" ? undefined : SVC_REVISIONS;

/** Whether there are folders to read and to write, or only what the executable was built with. */
export const hasSourceTree = builtInRevisions === undefined;
