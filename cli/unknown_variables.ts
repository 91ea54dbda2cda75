import { nearest } from "../platform/nearest.ts";
import type { Environment } from "../platform/variable.ts";

/** Read by the command line itself, by `svc up`, or by the tests: no part of the service's configuration. */
const others = ["SVC_SERVER", "SVC_TOKEN", "SVC_DEBUG", "SVC_END_WITH", "SVC_TRIAL_PASSWORD", "SVC_BUILD"];

/** One sentence for each variable that begins with SVC_ and that nobody reads: a misspelt one has no effect. */
export function unknownVariables(environment: Environment, known: readonly string[]): string[] {
  const all = new Set([...known, ...others]);
  return Object.keys(environment)
    .filter((name) => /^SVC_(?!TEST_)/.test(name) && environment[name] && !all.has(name))
    .sort()
    .map((name) => {
      const match = nearest(name, [...all]);
      return `${name} is no variable of svc${match ? `: did you mean ${match}?` : ""}`;
    });
}
