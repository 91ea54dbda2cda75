import { addressOf } from "./cast.ts";
import { onCallFor, type Scene } from "./scene.ts";
import { teams } from "./texts/people.ts";
import { hoursAfter, hoursBetween } from "./time.ts";

const second = 1 / 3600;
/** Hours that somebody commands before they hand over, and how often that happens in one incident. */
const watch = 8;
const handovers = 3;

/** Who comes, in which roles, who hands over to whom, and who leaves. */
export function people(scene: Scene): void {
  const { scenario, reportedAt, end, random, cast, at, world } = scene;
  const duration = hoursBetween(reportedAt, end);
  const after = (hours: number) => hoursAfter(reportedAt, Math.min(hours, duration * 0.8));
  const info = scenario.priority === "Info";
  at(hoursAfter(reportedAt, 2 * second), (date) => {
    const commander = info ? scenario.reporter : onCallFor(world, scenario.type, date).now;
    cast.join(commander, ["commander"], date, "system");
  });
  const named = [...(scenario.with ?? []), ...(scenario.tasks ?? []).flatMap(({ who }) => who)];
  for (const key of new Set(named)) {
    at(after(random.between(0.05, 0.4)), (date) => cast.join(key, ["participant"], date));
  }
  const crowd = { Info: 1, Low: 2, Medium: 3, High: 4 }[scenario.priority];
  const helpers = random.some(teams[scenario.team].people, crowd);
  for (const [index, key] of helpers.entries()) {
    at(after(random.between(0.05, 0.5)), (date) => {
      // The first to come also writes down what happens.
      cast.join(key, index === 0 && crowd > 2 ? ["participant", "scribe"] : ["participant"], date);
    });
  }
  if (crowd > 2) {
    const liaison = random.pick(teams.support.people);
    at(after(random.between(0.1, 0.6)), (date) => cast.join(liaison, ["liaison"], date));
  }
  if (random.chance(0.4)) {
    const observer = random.pick(["quentin", "rupert", "xavier"]);
    at(
      after(random.between(0.5, 2)),
      (date) => cast.has(observer) || cast.join(observer, ["observer"], date),
    );
  }
  if (!info) handOvers(scene, duration, new Set(named));
  if (crowd > 1 && random.chance(0.6)) {
    at(hoursAfter(reportedAt, duration * 0.85), (date) => {
      const free = cast
        .active()
        .filter(
          (key) =>
            !named.includes(key) && key !== cast.inRole("commander", date) && key !== scenario.reporter,
        );
      if (free.length > 2) cast.leave(random.pick(free), date);
    });
  }
}

/** After a watch somebody else takes command. Who had it goes home, and is back the next morning. */
function handOvers({ scenario, reportedAt, cast, at, world }: Scene, duration: number, needed: Set<string>) {
  for (let turn = 1; turn <= handovers && turn * watch < duration * 0.8; turn += 1) {
    at(hoursAfter(reportedAt, turn * watch), (date) => {
      const from = cast.inRole("commander", date);
      const { now, next } = onCallFor(world, scenario.type, date);
      cast.handOver(now === from ? next : now, date);
      if (turn > 1 || !from || needed.has(from) || from === scenario.reporter || duration < 2.5 * watch)
        return;
      at(hoursAfter(date, 0.5), (later) => {
        if (cast.has(from) && cast.inRole("commander", later) !== from) cast.leave(from, later);
      });
      at(hoursAfter(date, watch + 1.5), (morning) => cast.join(from, ["participant"], morning));
    });
  }
}

/** From Active to where it is, and back for those that were opened again. */
export function states(scene: Scene): void {
  const { reportedAt, stableAt, closedAt, reopened, cast, tell, at } = scene;
  const by = (date: Date) => addressOf(cast.inRole("commander", date) ?? scene.scenario.reporter);
  const change = (date: Date, from: string, to: string, kind: string, description: string, more = {}) =>
    at(date, () => tell({ at: date, actor: by(date), kind, description, data: { from, to, ...more } }));
  if (reopened) {
    change(reopened.stableAt, "Active", "Stable", "incident.stable", "Stable");
    const before = { stable_at: reopened.stableAt, closed_at: null };
    const why = "Active again: it came back";
    change(reopened.reopenedAt, "Stable", "Active", "incident.reopened", why, before);
  }
  if (stableAt) change(stableAt, "Active", "Stable", "incident.stable", "Stable");
  if (closedAt) change(closedAt, "Stable", "Closed", "incident.closed", "Closed");
  if (hoursBetween(reportedAt, scene.end) <= 0)
    throw new RangeError("An incident ends after it was reported");
}
