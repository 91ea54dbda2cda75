import { and, eq, inArray } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { individual, participant, team } from "../../../drizzle/schema/index.ts";
import { InvalidInput } from "../../../platform/errors.ts";
import { individualOf } from "../../catalog/person/of_actor.ts";
import type { MethodAnswer } from "../../plugin/methods.ts";
import { planJoined } from "../flow/plan.ts";
import { type Joining, join } from "../participant/join.ts";
import { recordEvent } from "../timeline/event.ts";
import { keyFor, type StepRun, throwFailures } from "./ask.ts";
import { keepEach } from "./keep.ts";
import { parsePerson } from "./people.ts";
import { recommend } from "./recommend.ts";

type Proposal = MethodAnswer<"participant", "resolve">[number];
type Reasons = Proposal["reasons"];

interface Proposed {
  people: number;
  teams: number;
  faults: string[];
}

/** Asks every participant plugin who should participate. */
export async function proposeParticipants(run: StepRun): Promise<string> {
  const { context, incident } = run;
  const plugins = context.plugins.ofType("participant");
  const asked = {
    plugins,
    method: "resolve",
    input: { incident },
    key: keyFor(run, "participants"),
  } as const;
  const { kept, failures } = await keepEach(run, asked, (tx, slug, answer) =>
    keepProposals(tx, run, slug, answer),
  );
  throwFailures(failures);
  const people = kept.reduce((sum, one) => sum + one.people, 0);
  const teams = kept.reduce((sum, one) => sum + one.teams, 0);
  return `People proposed: ${people}; teams: ${teams}`;
}

async function keepProposals(
  tx: Transaction,
  run: StepRun,
  pluginSlug: string,
  proposals: readonly Proposal[],
): Promise<Proposed> {
  const incidentId = run.incident.id;
  const at = run.context.clock.now();
  const faults = new Set<string>();
  const people = await individualsOf(tx, proposals, at, faults);
  let joined = false;
  for (const [individualId, reasons] of people) {
    await recommend(tx, "individual", individualId, { incidentId, pluginSlug, reasons, at });
    joined = (await joinOnce(tx, { incidentId, individualId, at, source: pluginSlug })) || joined;
  }
  const teams = await teamsOf(tx, proposals, faults);
  for (const { id, name, reasons } of teams) {
    const isNew = await recommend(tx, "team", id, { incidentId, pluginSlug, reasons, at });
    if (!isNew) continue;
    await recordEvent(tx, {
      incidentId,
      at,
      actor: "system",
      source: pluginSlug,
      kind: "team.proposed",
      description: `Team proposed: ${name}`,
      data: { team_id: id },
    });
  }
  if (joined) await planJoined(tx, { incidentId, at, plugins: run.context.plugins }, run.waiting);
  return { people: people.size, teams: teams.length, faults: [...faults] };
}

/** Returns the proposed individuals with the reasons. One that does not exist or has no valid address is a fault. */
async function individualsOf(
  tx: Transaction,
  proposals: readonly Proposal[],
  at: Date,
  faults: Set<string>,
): Promise<Map<number, Reasons>> {
  const people = proposals.filter((one) => "individual" in one);
  const ids = people.flatMap(({ individual: one }) => ("id" in one ? [one.id] : []));
  const there = await rowsThere(tx, individual, ids);
  const found = new Map<number, Reasons>();
  const add = (id: number, reasons: Reasons) => found.set(id, [...(found.get(id) ?? []), ...reasons]);
  for (const { individual: one, reasons } of people) {
    if (!("id" in one)) continue;
    if (there.has(one.id)) add(one.id, reasons);
    else faults.add("proposed an individual that does not exist");
  }
  const named = people.flatMap(({ individual: one, reasons }) => {
    if (!("email" in one)) return [];
    try {
      return [{ ...parsePerson(one), reasons }];
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      faults.add("proposed an individual without a valid name or address");
      return [];
    }
  });
  // In a fixed order, so that two that create the same individuals cannot deadlock.
  for (const { reasons, ...person } of named.sort((a, b) => (a.user < b.user ? -1 : 1))) {
    add(await individualOf(tx, person, at), reasons);
  }
  return found;
}

async function teamsOf(tx: Transaction, proposals: readonly Proposal[], faults: Set<string>) {
  const proposed = proposals.flatMap((one) => ("team" in one ? [one] : []));
  const ids = proposed.map((one) => one.team.id);
  const there = await rowsThere(tx, team, ids);
  if (ids.some((id) => !there.has(id))) faults.add("proposed a team that does not exist");
  return [...there].map(([id, name]) => {
    const reasons = proposed.filter((one) => one.team.id === id).flatMap((one) => one.reasons);
    return { id, name, reasons };
  });
}

/** Returns names by id for the rows that exist, which stay until the transaction ends. */
async function rowsThere(
  tx: Transaction,
  table: typeof individual | typeof team,
  ids: number[],
): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map();
  const rows = await tx
    .select({ id: table.id, name: table.name })
    .from(table)
    .where(inArray(table.id, ids))
    .orderBy(table.id)
    .for("key share");
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** Does not bring back a person who has left, or change the roles of a participant. */
async function joinOnce(
  tx: Transaction,
  { incidentId, individualId, at, source }: Omit<Joining, "roles" | "actor">,
): Promise<boolean> {
  const [known] = await tx
    .select({ id: participant.id })
    .from(participant)
    .where(and(eq(participant.incidentId, incidentId), eq(participant.individualId, individualId)))
    .limit(1);
  if (known) return false;
  await join(tx, { incidentId, individualId, roles: ["participant"], at, actor: "system", source });
  return true;
}
