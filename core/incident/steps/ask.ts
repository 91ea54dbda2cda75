import { Refused, Unavailable } from "../../../platform/errors.ts";
import { sha256Hex } from "../../../platform/secret.ts";
import { type ActivePlugin, callPlugin, type Outcome } from "../../plugin/call.ts";
import type { PluginContext } from "../../plugin/context.ts";
import type { IncidentFacts } from "../../plugin/facts.ts";
import type { MethodAnswer, MethodInput, MethodName, PluginType } from "../../plugin/methods.ts";
import { type Claim, renew } from "../flow/lease.ts";

/** What the work of a step is handed. */
export interface StepRun {
  context: PluginContext;
  claim: Claim;
  /** As it was when the step began. */
  incident: IncidentFacts;
  /** Aborts when the program stops. */
  signal: AbortSignal;
  /** Waits until these steps have ended, where they run beside this one. */
  behind(...steps: string[]): Promise<void>;
  /** Steps beside this one that wait for it, and then read who takes part. */
  waiting: ReadonlySet<string>;
}

/**
 * The work of a step. It says for the timeline what was done, if anything was.
 * @throws Unavailable in words for people, Refused where trying again is of no use, Postponed; whatever else it throws is a
 * fault of ours
 */
export type StepWork = (run: StepRun) => Promise<string | undefined>;

/** The same for each attempt at a thing of this incident, so that a plugin does it once. */
export function keyFor(
  { incident }: { incident: Pick<IncidentFacts, "id"> },
  what: string,
  ...which: (string | number)[]
): string {
  const rest = which.length === 0 ? "" : `-${sha256Hex(JSON.stringify(which)).slice(0, 16)}`;
  return `incident-${incident.id}-${what}${rest}`;
}

/** @throws Unavailable when the plugin fails, Refused when it says that it would each time */
export async function ask<T extends PluginType, M extends MethodName<T>>(
  run: StepRun,
  plugin: ActivePlugin<T>,
  method: M,
  input: MethodInput<T, M>,
  key: string,
): Promise<MethodAnswer<T, M>> {
  const [outcome] = await askEach(run, [plugin], method, input, key);
  return answerOf(outcome!);
}

/** Asks several plugins the same at once. A failure is told to the log and is the caller's to judge. */
export async function askEach<T extends PluginType, M extends MethodName<T>>(
  run: StepRun,
  plugins: readonly ActivePlugin<T>[],
  method: M,
  input: MethodInput<T, M>,
  key: string,
): Promise<Outcome<MethodAnswer<T, M>>[]> {
  const { context, claim, signal } = run;
  await renew(context, claim);
  const outcomes = await Promise.all(
    plugins.map((plugin) => callPlugin(plugin, method, input, { signal, key })),
  );
  if (outcomes.some((outcome) => !outcome.ok && outcome.reason === "aborted")) signal.throwIfAborted();
  for (const [at, outcome] of outcomes.entries()) {
    if (outcome.ok) continue;
    const { reason, detail, frames } = outcome;
    const { incidentId, step } = claim;
    const facts = { plugin: plugins[at]?.slug, method, incident_id: incidentId, step, reason, frames };
    context.log.warn(facts, `a plugin failed: ${detail}`);
  }
  return outcomes;
}

/** @throws Unavailable with the plugin's failure, Refused where that is for good */
export function answerOf<V>(outcome: Outcome<V>): V {
  if (outcome.ok) return outcome.value;
  throw outcome.permanent ? new Refused(outcome.detail) : new Unavailable(outcome.detail);
}

/** For a step that keeps what went well, and so is tried again. @throws Unavailable with what did not */
export function throwFailures(failures: readonly string[]): void {
  if (failures.length > 0) throw new Unavailable(failures.join("; "));
}
