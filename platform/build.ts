import { version } from "../package.json" with { type: "json" };

/** Embedded into the single executable by scripts/build.ts. */
declare const SVC_BUILD: string | undefined;

/** This build, as described by git (`v2-3-g8489856`); undefined in a clone, and if the build did not set it. */
export const build = (typeof SVC_BUILD === "undefined" ? process.env.SVC_BUILD : SVC_BUILD) || undefined;

/** Version and build, for people. */
export const release = build === undefined ? version : `${version} (${build})`;
