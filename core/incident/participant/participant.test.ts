import { beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { participantRoles } from "../../../drizzle/schema/index.ts";
import { Conflict } from "../../../platform/errors.ts";
import { createLog } from "../../../platform/log.ts";
import { TestClock } from "../../../tests/support/clock.ts";
import { useDatabase } from "../../../tests/support/database/database.ts";
import { signedIn } from "../../../tests/support/domain/actor.ts";
import { type IncidentIds, insertIncident } from "../../../tests/support/domain/incident.ts";
import { effort } from "../../../tests/support/effort.ts";
import {
  costBasisOf,
  insertEmptyIncident,
  insertIndividual,
  noPlugins,
  rowsOf,
  timelineOf,
} from "../../../tests/support/http/participants.ts";
import { readConfig } from "../../config.ts";
import type { AppContext } from "../../plugin/context.ts";
import { assumeRole } from "./assume.ts";
import { inviteParticipant } from "./invite.ts";
import { leaveIncident } from "./leave.ts";
import type { ParticipantRole } from "./participant.ts";
import { removeParticipant } from "./remove.ts";
import { renounceRole } from "./renounce.ts";

const clock = new TestClock();
const client = useDatabase(2);
let context: AppContext;
let ids: IncidentIds;
const people: number[] = [];
beforeAll(async () => {
  const { db } = client;
  context = { db, clock, config: readConfig({}), log: createLog("silent"), plugins: noPlugins };
  ids = await insertIncident(db, clock.now());
  for (let i = 0; i < 4; i += 1) people.push(await insertIndividual(db, clock.now()));
});

const actor = signedIn("root", { admin: true });

/** A participation or a person, by number. */
type Step =
  | { does: "join"; who: number; roles: ParticipantRole[] }
  | { does: "assume" | "renounce"; which: number; role: ParticipantRole }
  | { does: "take over"; which: number; from: number }
  | { does: "leave" | "remove"; which: number };

const role = fc.constantFrom(...participantRoles);
const which = fc.nat(9);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ does: fc.constant("join" as const), who: fc.nat(3), roles: fc.array(role, { maxLength: 3 }) }),
  fc.record({ does: fc.constantFrom("assume" as const, "renounce" as const), which, role }),
  fc.record({ does: fc.constant("take over" as const), which, from: which }),
  fc.record({ does: fc.constantFrom("leave" as const, "leave" as const, "remove" as const), which }),
);

/** The expected state. */
interface Participation {
  who: number;
  active: boolean;
  removed: boolean;
  /** Only open ones. */
  roles: Set<ParticipantRole>;
}

class Model {
  readonly all: Participation[] = [];
  readonly kinds: string[] = [];

  get commander(): Participation | undefined {
    return this.all.find(({ roles }) => roles.has("commander"));
  }

  /** Runs the step if it is possible. @returns whether it was */
  does(step: Step): boolean {
    if (step.does === "join") return this.join(step.who, step.roles);
    const one = this.all[step.which]!;
    if (step.does === "remove") return !one.active && this.remove(one);
    if (!one.active) return false;
    if (step.does === "assume") return this.assume(one, step.role);
    if (step.does === "take over")
      return this.commander === this.all[step.from] && this.assume(one, "commander");
    if (step.does === "renounce") return this.renounce(one, step.role);
    if (one === this.commander) return false;
    one.active = false;
    one.roles.clear();
    this.kinds.push("participant.left");
    return true;
  }

  private join(who: number, roles: ParticipantRole[]): boolean {
    let one = this.all.find((other) => other.who === who && other.active && !other.removed);
    const isNew = one === undefined;
    if (one === undefined) {
      one = { who, active: true, removed: false, roles: new Set() };
      this.all.push(one);
      this.kinds.push("participant.joined");
    }
    const assumed = roles.filter((role) => this.assume(one, role));
    return isNew || assumed.length > 0;
  }

  private assume(one: Participation, role: ParticipantRole): boolean {
    if (one.roles.has(role)) return false;
    if (role === "commander") this.commander?.roles.delete("commander");
    one.roles.add(role);
    this.kinds.push("role.assumed");
    return true;
  }

  private renounce(one: Participation, role: ParticipantRole): boolean {
    if (role === "commander" || !one.roles.delete(role)) return false;
    this.kinds.push("role.renounced");
    return true;
  }

  private remove(one: Participation): boolean {
    one.removed = true;
    this.kinds.push("participant.deleted");
    return true;
  }
}

/** Runs the step on the incident. @returns the participant's id, or undefined when it is refused as a Conflict */
async function attempt(incidentId: number, step: Step, known: number[]): Promise<number | undefined> {
  try {
    if (step.does === "join") {
      const wanted = { incidentId, individualId: people[step.who]!, roles: step.roles };
      return (await inviteParticipant(context, actor, wanted)).id;
    }
    const participantId = known[step.which]!;
    const of = { incidentId, participantId };
    if (step.does === "take over") {
      const replaces = known[step.from]!;
      await assumeRole(context, actor, { ...of, role: "commander", replaces });
    } else if (step.does === "assume") await assumeRole(context, actor, { ...of, role: step.role });
    else if (step.does === "renounce") await renounceRole(context, actor, { ...of, role: step.role });
    else if (step.does === "leave") await leaveIncident(context, actor, of);
    else await removeParticipant(context, actor, { ...of, address: "" });
    return participantId;
  } catch (error) {
    if (error instanceof Conflict) return undefined;
    throw error;
  }
}

test("joining, leaving, assuming and renouncing match the model in tables and timeline", async () => {
  const { db } = client;
  let reached = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 25 }), async (steps) => {
      const incidentId = await insertEmptyIncident(db, ids, clock.now());
      const model = new Model();
      const known: number[] = [];
      let hadCommander = false;
      for (const wanted of steps) {
        const step = within(wanted, known.length);
        // Removed ones are a 404, which other tests cover.
        if (!step || ("which" in step && model.all[step.which]!.removed)) continue;
        clock.advance(60);
        const basis = await costBasisOf(db, incidentId);
        const possible = model.does(step);
        const done = await attempt(incidentId, step, known);
        expect([step, done !== undefined]).toEqual([step, possible]);
        if (done !== undefined && step.does === "join" && !known.includes(done)) known.push(done);
        const grown = (await costBasisOf(db, incidentId)) > basis;
        expect(grown).toBe(possible);
        if (possible) reached += 1;

        const { participants, roles } = await rowsOf(db, incidentId);
        expect(
          participants.map(({ id, individualId, leftAt }) => ({
            id,
            who: people.indexOf(individualId),
            active: leftAt === null,
            roles: roles
              .filter(({ participantId, renouncedAt }) => participantId === id && renouncedAt === null)
              .map(({ role }) => role)
              .sort(),
          })),
        ).toEqual(
          model.all.flatMap(({ who, active, removed, roles }, i) =>
            removed ? [] : [{ id: known[i]!, who, active, roles: [...roles].sort() }],
          ),
        );
        // An incident that has had a commander always has one.
        hadCommander ||= model.commander !== undefined;
        expect(model.commander !== undefined).toBe(hadCommander);
      }
      expect((await timelineOf(db, incidentId)).map(({ kind }) => kind)).toEqual(model.kinds);
    }),
    { numRuns: effort(25) },
  );
  // About 235, give or take 20: possible steps are common.
  expect(reached).toBeGreaterThan(100);
});

/** Maps the step to existing participations. */
function within(step: Step, count: number): Step | undefined {
  if (step.does === "join") return step;
  if (count === 0) return undefined;
  if (step.does === "take over") return { ...step, which: step.which % count, from: step.from % count };
  return { ...step, which: step.which % count };
}
