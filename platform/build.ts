import { version } from "../package.json" with { type: "json" };

/** Written into the single executable by scripts/build.ts. */
declare const SVC_BUILD: string | undefined;

/** Which build this is, as git describes it (`v2-3-g8489856`); undefined in a clone, and where the build was not told. */
export const build = (typeof SVC_BUILD === "undefined" ? process.env.SVC_BUILD : SVC_BUILD) || undefined;

/** Version and build, for people. */
export const release = build === undefined ? version : `${version} (${build})`;
