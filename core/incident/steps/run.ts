import { asc, min } from "drizzle-orm";
import { flowStep } from "../../../drizzle/schema/index.ts";
import { Unavailable } from "../../../platform/errors.ts";
import { attemptWork, LeaseLost } from "../../outbox/work.ts";
import type { PluginContext } from "../../plugin/context.ts";
import { type Claim, claimDue, fail, finish, giveBack, isStepDue, renew } from "../flow/lease.ts";
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
  /** Aborts when the program stops: plugins are no longer waited for, and steps given back. */
  signal?: AbortSignal;
}

/** How many incidents `runDueFlows` works on at once, so that plugins which hang for some keep no others waiting. */
const incidentsAtOnce = 16;
const incidentsPerRun = 200;

/** Runs what is due of an incident, all steps beside each other. It throws nothing: a step that fails says so itself. */
export async function runFlow(
  context: PluginContext,
  incidentId: number,
  { signal = context.background?.signal ?? new AbortController().signal }: FlowOptions = {},
): Promise<void> {
  try {
    // Again, since a step may set others due.
    for (;;) {
      if (signal.aborted) return;
      const claims = await claimDue(context, incidentId);
      if (claims.length === 0) return;
      await runClaims(context, claims, signal);
    }
  } catch (err) {
    context.log.error({ err, incident_id: incidentId }, "could not go on with what follows from an incident");
  }
}

async function runClaims(context: PluginContext, claims: Claim[], signal: AbortSignal): Promise<void> {
  const ended = new Map(claims.map(({ step }) => [step, Promise.withResolvers<void>()]));
  // Of one incident, and all begin now.
  const facts = incidentFacts(context, claims[0]!.incidentId);
  await Promise.all(
    claims.map(async (claim) => {
      const { step, incidentId } = claim;
      const behind = async (...steps: string[]) => {
        for (const { promise } of steps.flatMap((one) => ended.get(one) ?? [])) {
          await promise;
          // Each may have taken as long as a plugin may.
          await renew(context, claim);
        }
      };
      const waiting = new Set(claims.map((other) => other.step).filter((other) => other !== step));
      try {
        await runStep(context, claim, { signal, behind, waiting, facts });
      } catch (err) {
        // Its lease ends by itself, and somebody takes it over.
        if (!(err instanceof LeaseLost)) {
          context.log.error({ err, incident_id: incidentId, step }, "a step could not be ended");
        }
      } finally {
        ended.get(step)?.resolve();
      }
    }),
  );
}

/** @throws LeaseLost; and what the database says when it cannot be noted how the step ended */
async function runStep(
  context: PluginContext,
  claim: Claim,
  {
    facts,
    ...run
  }: Pick<StepRun, "signal" | "behind" | "waiting"> & {
    facts: ReturnType<typeof incidentFacts>;
  },
): Promise<void> {
  const { incidentId, step } = claim;
  const work = async () => {
    const incident = await facts;
    if (!incident) throw new LeaseLost();
    return await workOf(step)({ ...run, context, claim, incident });
  };
  await attemptWork(claim, run.signal, work, {
    finish: (done) => finish(context, claim, done),
    fail: (failure) => fail(context, claim, failure),
    giveBack: (seconds) => giveBack(context, claim, seconds),
    onFault: (err) =>
      context.log.error({ err, incident_id: incidentId, step }, "a step failed by a fault of ours"),
  });
}

/** Runs it beside what the caller does, and comes back when it is done or after that time. */
export async function runFlowWithin(
  context: PluginContext,
  incidentId: number,
  milliseconds: number,
): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  const run = () => runFlow(context, incidentId);
  const running = context.background?.addInTurn(run) ?? run();
  await Promise.race([running, late]);
  clearTimeout(timer);
}

/**
 * Runs what is due of all incidents: what was to be tried again, and what a process that died has left. Runs that
 * overlap share the work, and throw nothing.
 */
export async function runDueFlows(context: PluginContext, options: FlowOptions = {}): Promise<void> {
  const { db, clock, log } = context;
  try {
    const due = await db
      .select({ incidentId: flowStep.incidentId })
      .from(flowStep)
      .where(isStepDue(clock.now()))
      .groupBy(flowStep.incidentId)
      .orderBy(asc(min(flowStep.dueAt)))
      .limit(incidentsPerRun);
    const ids = due.values();
    const work = async () => {
      for (const { incidentId } of ids) await runFlow(context, incidentId, options);
    };
    await Promise.all(Array.from({ length: incidentsAtOnce }, work));
  } catch (err) {
    log.warn({ err }, "could not look for what follows from incidents");
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

/** What a step does, by its name: what it follows from, what it does, and with which plugin where there are several. */
export function workOf(step: string): StepWork {
  const [on, what, slug = ""] = step.split(":");
  const work = works[`${on}:${what}`];
  // Of a later release, which has been taken back.
  if (!work) return () => Promise.reject(new Unavailable("This release of svc does not know this step"));
  return (run) => work(run, slug);
}

/** Proposes documents that are there and makes those that the incident is to have. Neither waits for the other. */
export async function bringDocuments(run: StepRun): Promise<string> {
  const [{ proposed, ...first }, { made, ...second }] = await Promise.all([
    proposeDocuments(run),
    makeDocuments(run),
  ]);
  throwFailures([...first.failures, ...second.failures]);
  return `Documents proposed: ${proposed}; made: ${made}`;
}
