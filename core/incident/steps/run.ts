import { asc, min } from "drizzle-orm";
import pLimit from "p-limit";
import type { Transaction } from "../../../drizzle/client.ts";
import { reasonOf } from "../../../drizzle/database_error.ts";
import { flowStep } from "../../../drizzle/schema/index.ts";
import { Unavailable } from "../../../platform/errors.ts";
import { withTimeLimit } from "../../../platform/time_limit.ts";
import { readDatabaseTime } from "../../database_clock.ts";
import { attemptWork, LeaseLost } from "../../outbox/work.ts";
import type { ActivePlugin } from "../../plugin/call.ts";
import type { AppContext } from "../../plugin/context.ts";
import type { PluginType } from "../../plugin/methods.ts";
import {
  type Claim,
  claimDue,
  fail,
  finish,
  isStepDue,
  release,
  renew,
  runAs,
  type StepContext,
  stepTime,
} from "../flow/lease.ts";
import { incidentFacts, shareTerms } from "../incident/facts.ts";
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
/** How many incidents occupy a connection for all of their steps at once, so that enough are left for reads. */
const transactions = pLimit(2);

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
  const together = togetherOf(context, claims);
  const isDone = together.length > 1 && (await runTogether(context, together, { claims, signal }));
  const rest = isDone ? claims.filter((claim) => !together.includes(claim)) : claims;
  await runEach(rest, { context, claims, signal }, async (work, claim) => {
    const { incidentId, step } = claim;
    try {
      await attemptStep(context, claim, { work, signal });
    } catch (err) {
      // The lease expires, and another process takes the step over.
      if (!(err instanceof LeaseLost)) {
        context.log.error(
          { err, incident_id: incidentId, step },
          "the outcome of a step could not be recorded",
        );
      }
    }
  });
}

/**
 * Runs steps in one transaction, instead of several for each. Returns whether they are done: if one of them cannot be
 * done, none is, and nothing has happened.
 */
async function runTogether(
  context: AppContext,
  together: readonly Claim[],
  { claims, signal }: { claims: readonly Claim[]; signal: AbortSignal },
): Promise<boolean> {
  try {
    const run = async (tx: Transaction, held: Claim[]) => {
      shareTerms(tx, context.db);
      const within = { ...context, db: tx };
      const ends = await runEach(held, { context: within, claims, signal }, async (work, claim) =>
        finish(within, claim, await work()),
      );
      const failed = ends.find((end) => end.status === "rejected");
      if (failed) throw failed.reason;
    };
    await transactions(() => runAs(context, together, run));
    return true;
  } catch (err) {
    const { incidentId } = together[0]!;
    context.log.debug({ err, incident_id: incidentId }, "steps of an incident run one by one");
    return false;
  }
}

/** The types of plugins that a step may call, by what it is about. Those that a step names come from its own plugin. */
const calls: Readonly<Record<string, readonly PluginType[]>> = {
  participants: ["participant"],
  commander: ["participant"],
  documents: ["document-resolver", "document"],
  conversation: ["conversation"],
  group: ["participant_group"],
};

/**
 * Those that use nothing but our database. Not one that has failed before. None if others wait for one that is not among
 * them.
 */
function togetherOf({ plugins }: AppContext, claims: readonly Claim[]): Claim[] {
  const together = claims.filter(({ step, attempts }) => {
    const [, what = "", slug] = step.split(":");
    const types = calls[what] ?? [];
    const called = types.flatMap((type): (ActivePlugin | undefined)[] =>
      slug === undefined ? [...plugins.ofType(type)] : [plugins.find(type, slug)],
    );
    return attempts === 1 && types.length > 0 && called.every((plugin) => plugin?.methodsWithin);
  });
  const others = claims.filter((claim) => !together.includes(claim));
  return others.some(({ step }) => awaited.includes(step)) ? [] : together;
}

/** The steps that others wait for. */
const awaited = ["reported:participants", "reported:commander"];

/** Runs steps concurrently, as far as they do not wait for each other. `claims` are all that were taken together. */
async function runEach(
  steps: readonly Claim[],
  { context, claims, signal }: { context: AppContext; claims: readonly Claim[]; signal: AbortSignal },
  end: (work: () => Promise<string | undefined>, claim: Claim) => Promise<void>,
): Promise<PromiseSettledResult<void>[]> {
  const ended = new Map(steps.map(({ step }) => [step, Promise.withResolvers<void>()]));
  // They belong to one incident and begin now, so they share its facts.
  let read: ReturnType<typeof incidentFacts> | undefined;
  const facts = () => (read ??= incidentFacts(context, claims[0]!.incidentId));
  return await Promise.allSettled(
    steps.map(async (claim) => {
      const { step } = claim;
      const waitFor = async (...steps: string[]) => {
        for (const { promise } of steps.flatMap((one) => ended.get(one) ?? [])) {
          await promise;
          // Each may have taken as long as a plugin may.
          await renew(context, claim);
        }
      };
      const waiting = new Set(claims.map((other) => other.step).filter((other) => other !== step));
      const work = async () => {
        const incident = await facts();
        if (!incident) throw new LeaseLost();
        return await workOf(step)({ signal, waitFor, waiting, context, claim, incident });
      };
      try {
        await end(work, claim);
      } finally {
        ended.get(step)?.resolve();
      }
    }),
  );
}

/** @throws LeaseLost, or the database's error if the outcome cannot be recorded */
async function attemptStep(
  context: AppContext,
  claim: Claim,
  { work, signal }: { work: () => Promise<string | undefined>; signal: AbortSignal },
): Promise<void> {
  const { incidentId, step } = claim;
  await attemptWork(claim, signal, work, {
    finish: (done) => finish(context, claim, done),
    fail: (failure) => fail(context, claim, failure),
    release: (seconds) => release(context, claim, seconds),
    onFault: (err) =>
      context.log.error({ err, incident_id: incidentId, step }, "a step failed because of an internal error"),
  });
}

/**
 * Runs it in the background, claimed by the database's time, and returns when it is done or after this time: at once if
 * it has to wait for the steps of other incidents.
 */
export async function runFlowWithin(
  context: AppContext,
  incidentId: number,
  milliseconds: number,
): Promise<void> {
  const { background } = context;
  const isQueued = background?.isFull;
  const run = () => onDatabaseTime(context, (timed) => runFlow(timed, incidentId));
  const ended = background?.addInTurn(run) ?? run();
  if (!isQueued) await withTimeLimit(milliseconds, ended);
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
