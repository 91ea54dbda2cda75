import { onCall } from "../../core/catalog/rotation/on_call.ts";
import { Cast, type Told } from "./cast.ts";
import type { Planned } from "./plan.ts";
import { type Random, randomOf } from "./random.ts";
import type { World } from "./world.ts";

/** One incident while it is being made up. */
export interface Scene extends Planned {
  world: World;
  id: number;
  /** INC-7. */
  name: string;
  random: Random;
  cast: Cast;
  events: Told[];
  tell: (told: Omit<Told, "source"> & { source?: string }) => void;
  /** What happens at that time. Things are put down in any order, and happen in the order of their times. */
  at: (date: Date, act: (at: Date) => void) => void;
  /** Lets what was put down since happen. */
  play: () => void;
  /** When it was stable for good, or the present. */
  end: Date;
}

export function openScene(world: World, planned: Planned, id: number): Scene {
  const events: Told[] = [];
  const acts: { date: Date; act: (at: Date) => void }[] = [];
  const tell: Scene["tell"] = (told) => void events.push({ source: "core", ...told });
  return {
    ...{ ...planned, world, id, name: `INC-${id}`, events, tell },
    random: randomOf(`${world.seed} ${planned.scenario.title} scene`),
    cast: new Cast(id, { personId: world.personId, next: world.next, tell }),
    at: (date, act) => void acts.push({ date, act }),
    play() {
      // What happens may bring about more, between that which is still to come.
      for (;;) {
        const [next] = acts.sort((a, b) => a.date.getTime() - b.date.getTime());
        if (!next) return;
        acts.shift();
        next.act(next.date);
      }
    },
    end: planned.stableAt ?? world.now,
  };
}

/** Who is on call for incidents of this type then, and who has the turn after that. */
export function onCallFor({ organisation }: World, type: string, at: Date): { now: string; next: string } {
  const serviceId = organisation.commanders.find((one) => one.type === type)?.serviceId;
  const rotation = organisation.services.find(({ id }) => id === serviceId)?.rotation;
  const turn = rotation && onCall({ ...rotation, members: rotation.members.length }, at);
  if (turn === undefined) throw new RangeError(`Nobody in the example is on call for ${type}`);
  const keyAt = (place: number) => {
    const id = rotation?.members[place % rotation.members.length];
    return organisation.individuals.find((one) => one.id === id)?.email.split("@")[0] ?? "";
  };
  return { now: keyAt(turn), next: keyAt(turn + 1) };
}
