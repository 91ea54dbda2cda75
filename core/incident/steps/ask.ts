import { Unavailable } from "../../../platform/errors.ts";
import { sha256Hex } from "../../../platform/secret.ts";
import { type ActivePlugin, callPlugin, type Outcome, workErrorOf } from "../../plugin/call.ts";
import type { AppContext } from "../../plugin/context.ts";
import type { IncidentFacts } from "../../plugin/facts.ts";
import type { MethodAnswer, MethodInput, MethodName, PluginType } from "../../plugin/methods.ts";
import { type Claim, renew } from "../flow/lease.ts";

/** The input of a step's work. */
export interface StepRun {
  context: AppContext;
  claim: Claim;
  /** As it was when the step began. */
  incident: IncidentFacts;
  /** Aborts when the program stops. */
  signal: AbortSignal;
  /** Waits for these steps to end, if they run concurrently with this one. */
  waitFor(...steps: string[]): Promise<void>;
  /** Concurrent steps that wait for this one before they read who takes part. */
  waiting: ReadonlySet<string>;
}

/**
 * The work of a step. Returns what was done for the timeline, if anything.
 * @throws Unavailable in words for people, Refused when a retry is useless, Postponed; any other error is a bug of ours
 */
export type StepWork = (run: StepRun) => Promise<string | undefined>;

/** A step cannot be done in the transaction of others. Nothing is recorded, and it runs on its own. */
export class RunsAlone extends Error {}

/** The same key for each attempt at one operation of this incident, so that a plugin performs it once. */
export function keyFor(
  { incident }: { incident: Pick<IncidentFacts, "id"> },
  what: string,
  ...which: (string | number)[]
): string {
  const rest = which.length === 0 ? "" : `-${sha256Hex(JSON.stringify(which)).slice(0, 16)}`;
  return `incident-${incident.id}-${what}${rest}`;
}

/** @throws Unavailable when the plugin fails, Refused when it says that it would fail every time */
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

/** Calls the same method of several plugins concurrently. Failures are logged, and the caller decides about them. */
export async function askEach<T extends PluginType, M extends MethodName<T>>(
  run: StepRun,
  plugins: readonly ActivePlugin<T>[],
  method: M,
  input: MethodInput<T, M>,
  key: string,
): Promise<Outcome<MethodAnswer<T, M>>[]> {
  const { context, claim, signal } = run;
  await renew(context, claim);
  const { tx: within } = claim.turn;
  const outcomes = await Promise.all(
    plugins.map((plugin) => callPlugin(plugin, method, input, { signal, key, within })),
  );
  if (within && outcomes.some(({ ok }) => !ok)) throw new RunsAlone();
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

/** @throws Unavailable with the plugin's failure, Refused if it is permanent */
export function answerOf<V>(outcome: Outcome<V>): V {
  if (outcome.ok) return outcome.value;
  throw workErrorOf(outcome);
}

/** For a step that keeps partial results and is retried. @throws Unavailable with the failures */
export function throwFailures(failures: readonly string[]): void {
  if (failures.length > 0) throw new Unavailable(failures.join("; "));
}
