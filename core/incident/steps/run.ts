import { asc, min } from "drizzle-orm";
import pLimit from "p-limit";
import { reasonOf } from "../../../drizzle/database_error.ts";
import { flowStep } from "../../../drizzle/schema/index.ts";
import { Unavailable } from "../../../platform/errors.ts";
import { withTimeLimit } from "../../../platform/time_limit.ts";
import { readDatabaseTime } from "../../database_clock.ts";
import { attemptWork, LeaseLost } from "../../outbox/work.ts";
import type { AppContext } from "../../plugin/context.ts";
import {
  type Claim,
  claimDue,
  fail,
  finish,
  isStepDue,
  release,
  renew,
  type StepContext,
  stepTime,
} from "../flow/lease.ts";
import { incidentFacts } from "../incident/facts.ts";
import { type StepRun, type StepWork, throwFailures } from "./ask.ts";
import { findCommander } from "./commander.ts";
import {
  archiveConversation,
  joinConversation,
  openConversation,
  reopenConversation,
  restrictConversation,
} from "./conversation.ts";
import { joinGroup, makeGroup } from "./group.ts";
import { makeDocuments } from "./make_documents.ts";
import { proposeParticipants } from "./participants.ts";
import { proposeDocuments } from "./propose_documents.ts";

export interface FlowOptions {
  /** Aborts when the program stops: plugin calls are cancelled, and steps released. */
  signal?: AbortSignal;
}

/** How many incidents `runDueFlows` works on at once, so that a hanging plugin does not delay the others. */
const incidentsAtOnce = 16;
const incidentsPerRun = 200;

/** Runs all due steps of an incident concurrently. It never throws: a failing step records its failure. */
export async function runFlow(
  context: AppContext,
  incidentId: number,
  { signal = context.background?.signal ?? new AbortController().signal }: FlowOptions = {},
): Promise<void> {
  try {
    // Repeats, since a step may make others due.
    for (;;) {
      if (signal.aborted) return;
      const claims = await claimDue(context, incidentId);
      if (claims.length === 0) return;
      await runClaims(context, claims, signal);
    }
  } catch (err) {
    context.log.error({ err, incident_id: incidentId }, "could not run the steps of an incident");
  }
}

async function runClaims(context: AppContext, claims: Claim[], signal: AbortSignal): Promise<void> {
  const ended = new Map(claims.map(({ step }) => [step, Promise.withResolvers<void>()]));
  // They belong to one incident and begin now, so they share its facts.
  let read: ReturnType<typeof incidentFacts> | undefined;
  const facts = () => (read ??= incidentFacts(context, claims[0]!.incidentId));
  await Promise.all(
    claims.map(async (claim) => {
      const { step, incidentId } = claim;
      const waitFor = async (...steps: string[]) => {
        for (const { promise } of steps.flatMap((one) => ended.get(one) ?? [])) {
          await promise;
          // Each may have taken as long as a plugin may.
          await renew(context, claim);
        }
      };
      const waiting = new Set(claims.map((other) => other.step).filter((other) => other !== step));
      try {
        await runStep(context, claim, { signal, waitFor, waiting, facts });
      } catch (err) {
        // The lease expires, and another process takes the step over.
        if (!(err instanceof LeaseLost)) {
          context.log.error(
            { err, incident_id: incidentId, step },
            "the outcome of a step could not be recorded",
          );
        }
      } finally {
        ended.get(step)?.resolve();
      }
    }),
  );
}

/** @throws LeaseLost, or the database's error if the outcome cannot be recorded */
async function runStep(
  context: AppContext,
  claim: Claim,
  {
    facts,
    ...run
  }: Pick<StepRun, "signal" | "waitFor" | "waiting"> & {
    facts: () => ReturnType<typeof incidentFacts>;
  },
): Promise<void> {
  const { incidentId, step } = claim;
  const work = async () => {
    const incident = await facts();
    if (!incident) throw new LeaseLost();
    return await workOf(step)({ ...run, context, claim, incident });
  };
  await attemptWork(claim, run.signal, work, {
    finish: (done) => finish(context, claim, done),
    fail: (failure) => fail(context, claim, failure),
    release: (seconds) => release(context, claim, seconds),
    onFault: (err) =>
      context.log.error({ err, incident_id: incidentId, step }, "a step failed because of an internal error"),
  });
}

/** Runs it in the background, claimed by the database's time, and returns when it is done or after this time. */
export async function runFlowWithin(
  context: AppContext,
  incidentId: number,
  milliseconds: number,
): Promise<void> {
  const run = () => onDatabaseTime(context, (timed) => runFlow(timed, incidentId));
  await withTimeLimit(milliseconds, context.background?.addInTurn(run) ?? run());
}

/**
 * Servers claim steps by the database's time: if their clocks differed by a lease, several would run the same step. It
 * never throws.
 */
export async function onDatabaseTime(
  context: AppContext,
  work: (timed: AppContext & StepContext) => Promise<void>,
): Promise<void> {
  try {
    await work({ ...context, stepClock: await readDatabaseTime(context.db) });
  } catch (err) {
    context.log.warn({ err, ...reasonOf(err) }, "could not run steps of incidents");
  }
}

/**
 * Runs the due steps of all incidents: retries, and what a dead process has left. Concurrent runs share the work. It
 * never throws.
 */
export async function runDueFlows(context: AppContext, options: FlowOptions = {}): Promise<void> {
  const { db, log } = context;
  try {
    const due = await db
      .select({ incidentId: flowStep.incidentId })
      .from(flowStep)
      .where(isStepDue(stepTime(context)))
      .groupBy(flowStep.incidentId)
      .orderBy(asc(min(flowStep.dueAt)))
      .limit(incidentsPerRun);
    await pLimit(incidentsAtOnce).map(due, ({ incidentId }) => runFlow(context, incidentId, options));
  } catch (err) {
    log.warn({ err, ...reasonOf(err) }, "could not look for due steps of incidents");
  }
}

const works: Readonly<Record<string, (run: StepRun, slug: string) => Promise<string | undefined>>> = {
  "reported:participants": proposeParticipants,
  "reported:commander": findCommander,
  "reported:documents": bringDocuments,
  "reported:conversation": openConversation,
  "reported:group": makeGroup,
  "joined:conversation": joinConversation,
  "joined:group": joinGroup,
  "closed:conversation": archiveConversation,
  "reopened:conversation": reopenConversation,
  "restricted:conversation": restrictConversation,
};

/** Returns the work of a step by its name: the cause, the work, and the plugin if there may be several. */
function workOf(step: string): StepWork {
  const [on, what, slug = ""] = step.split(":");
  const work = works[`${on}:${what}`];
  // The step is from a later release that was rolled back.
  if (!work) return () => Promise.reject(new Unavailable("This release of svc does not know this step"));
  return (run) => work(run, slug);
}

/** Proposes existing documents and creates the incident's own, concurrently. */
async function bringDocuments(run: StepRun): Promise<string> {
  const [{ proposed, ...first }, { made, ...second }] = await Promise.all([
    proposeDocuments(run),
    makeDocuments(run),
  ]);
  throwFailures([...first.failures, ...second.failures]);
  return `Documents proposed: ${proposed}; created: ${made}`;
}
