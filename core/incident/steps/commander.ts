import { and, desc, eq, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import {
  event,
  incident,
  incidentPriority,
  incidentType,
  participant,
  participantRole,
  service,
} from "../../../drizzle/schema/index.ts";
import { InvalidInput, SvcError, Unavailable } from "../../../platform/errors.ts";
import { individualOf } from "../../catalog/person/of_actor.ts";
import { writeAs } from "../flow/lease.ts";
import { planJoined } from "../flow/plan.ts";
import { announceCommand } from "../message/announce.ts";
import { assume } from "../participant/assume.ts";
import { join } from "../participant/join.ts";
import { type Change, commanderOf } from "../participant/participant.ts";
import { ask, keyFor, type StepRun } from "./ask.ts";
import { parsePerson } from "./people.ts";
import { recommend } from "./recommend.ts";

/**
 * Gives an incident its commander: the person on call if its type says so, or the reporter. If the person on call
 * cannot be determined, the reporter stands in and the step fails: unless a person decides who commands, the next
 * attempt hands over to the person on call.
 */
export async function findCommander(run: StepRun): Promise<string> {
  await run.waitFor("reported:participants");
  const { context, claim, incident: facts } = run;
  const write = (work: (tx: Transaction) => Promise<void>) =>
    writeAs(context, claim, async (tx) => {
      await work(tx);
      return `Commander: ${(await commanderOf(tx, facts.id))?.name}`;
    });
  const where = await onCallService(run);
  if (where === undefined) return await write((tx) => reporterCommands(tx, run));
  try {
    const settled = await writeAs(context, claim, (tx) => isSettled(tx, facts.id));
    const person = settled ? undefined : await askOnCall(run, where);
    return await write(async (tx) => {
      if (person) await onCallCommands(tx, run, where, person);
    });
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    await write((tx) => reporterCommands(tx, run));
    // Even if the plugin says that it would fail every time: somebody else is on call by then.
    if (!(error instanceof InvalidInput)) throw new Unavailable(error.detail, { cause: error });
    throw new Unavailable(`${where.pluginSlug} returned a person without a valid name or address`);
  }
}

type Service = Pick<typeof service.$inferSelect, "id" | "name" | "pluginSlug" | "externalId">;

/** Returns the service whose on-call person commands. Undefined if the reporter commands. */
async function onCallService({ context, incident: { id } }: StepRun): Promise<Service | undefined> {
  const [found] = await serviceQuery(context.db).execute({ id });
  return found;
}

const serviceQuery = preparedQuery((db) => {
  const { id, name, pluginSlug, externalId } = service;
  return db
    .select({ id, name, pluginSlug, externalId })
    .from(incident)
    .innerJoin(incidentType, eq(incidentType.id, incident.incidentTypeId))
    .innerJoin(incidentPriority, eq(incidentPriority.id, incident.incidentPriorityId))
    .innerJoin(service, eq(service.id, incidentType.commanderServiceId))
    .where(and(eq(incident.id, sql.placeholder("id")), eq(incidentPriority.reporterCommands, false)))
    .prepare("on_call_service");
});

/** @throws Unavailable when the person on call cannot be determined, or there is none */
async function askOnCall(run: StepRun, { id, name, pluginSlug, externalId }: Service) {
  const { plugins, clock } = run.context;
  if (pluginSlug === null) throw new Unavailable(`No plugin knows who is on call for ${name}`);
  const plugin = plugins.find("participant", pluginSlug);
  if (!plugin)
    throw new Unavailable(`${pluginSlug} is not enabled, so it is unknown who is on call for ${name}`);
  const facts = { id, name, ...(externalId !== null && { externalId }) };
  // Different for each attempt, because the person on call changes.
  const at = clock.now().toISOString();
  const person = await ask(run, plugin, "onCall", { service: facts, at }, keyFor(run, "on-call", id, at));
  if (person === null) throw new Unavailable(`Nobody is on call for ${name}, according to ${pluginSlug}`);
  return person;
}

/** Whether there is a commander who is not just standing in. */
async function isSettled(tx: Transaction, incidentId: number): Promise<boolean> {
  if ((await commanderOf(tx, incidentId)) === undefined) return false;
  const [last] = await tx
    .select({ actor: event.actor, source: event.source })
    .from(event)
    .where(
      and(
        eq(event.incidentId, incidentId),
        eq(event.kind, "role.assumed"),
        sql`${event.data} ->> 'role' = 'commander'`,
      ),
    )
    .orderBy(desc(event.id))
    .limit(1);
  return last?.actor !== "system" || last.source !== "core";
}

async function onCallCommands(
  tx: Transaction,
  run: StepRun,
  { id, name, pluginSlug }: Service,
  person: { email: string; name?: string },
): Promise<void> {
  const incidentId = run.incident.id;
  // A person may have taken command during the plugin call.
  if (pluginSlug === null || (await isSettled(tx, incidentId))) return;
  const at = run.context.clock.now();
  const individualId = await individualOf(tx, parsePerson(person), at);
  const reasons = [{ kind: "service" as const, id, name }];
  await recommend(tx, "individual", individualId, { incidentId, pluginSlug, reasons, at });
  await command(tx, run, individualId, pluginSlug);
}

/** Makes the reporter commander, unless there is one already. */
async function reporterCommands(tx: Transaction, run: StepRun): Promise<void> {
  const incidentId = run.incident.id;
  if ((await commanderOf(tx, incidentId)) !== undefined) return;
  const [reporter] = await tx
    .select({ individualId: participant.individualId })
    .from(participantRole)
    .innerJoin(participant, eq(participant.id, participantRole.participantId))
    .where(and(eq(participantRole.incidentId, incidentId), eq(participantRole.role, "reporter")))
    .orderBy(participantRole.id)
    .limit(1);
  if (!reporter) throw new Unavailable("This incident has no reporter who could command it");
  await command(tx, run, reporter.individualId, "core");
}

async function command(tx: Transaction, run: StepRun, individualId: number, source: string): Promise<void> {
  const { context, incident: facts, waiting } = run;
  const change: Change = {
    incidentId: facts.id,
    at: context.clock.now(),
    actor: "system",
    source,
    // The welcome message names the first commander.
    announce: async (command) => {
      if (command.from !== undefined) await announceCommand(tx, context, facts, command);
    },
  };
  const { participantId, joined } = await join(tx, { ...change, individualId, roles: [] });
  await assume(tx, { ...change, participantId, role: "commander" });
  if (joined) await planJoined(tx, { ...change, plugins: context.plugins }, waiting);
}
