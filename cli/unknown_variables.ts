import { nearest } from "../platform/nearest.ts";
import type { Environment } from "../platform/variable.ts";

/** Read by the command line itself or by `svc up`, so not part of the service's configuration. */
const others = [
  "SVC_SERVER",
  "SVC_TOKEN",
  "SVC_INCIDENT",
  "SVC_DEBUG",
  "SVC_END_WITH",
  "SVC_TRIAL_PASSWORD",
  "SVC_BUILD",
];

/** A warning for each variable that begins with SVC_ and has no effect: it may be misspelt. */
export function unknownVariables(environment: Environment, known: readonly string[]): string[] {
  const all = new Set([...known, ...others]);
  return Object.keys(environment)
    .filter((name) => /^SVC_(?!TEST_)/.test(name) && environment[name] && !all.has(name))
    .sort()
    .map((name) => {
      const match = nearest(name, [...all]);
      return `unknown variable: ${name}${match ? `. Did you mean ${match}?` : ""}`;
    });
}
