import { addressOf, nameOf } from "./cast.ts";
import type { Example, ExampleMessage, ExampleReport } from "./example.ts";
import type { Scene } from "./scene.ts";
import { hoursAfter, hoursBefore, hoursBetween } from "./time.ts";

const second = 1 / 3600;
/** Hours between two reports, as the default priorities have it. */
const reportHours = { High: 2, Medium: 6, Low: 12, Info: 24 } as const;
const mostReports = 5;

/** Messages in the incident's own channel. */
export function messages(scene: Scene, conversationId: number): ExampleMessage[] {
  const { scenario, reportedAt, stableAt, closedAt, end, random, cast, at, world, name } = scene;
  const said: ExampleMessage[] = [];
  const duration = hoursBetween(reportedAt, end);
  const say = (
    date: Date,
    who: (date: Date) => string | undefined,
    text: string,
    to?: () => string | undefined,
  ) =>
    at(date, () => {
      const author = who(date);
      const recipient = to?.();
      if (author === undefined || recipient === author) return;
      said.push({
        ...{
          id: world.next("message"),
          conversationId,
          at: date,
          authorId: world.personId(author),
          text,
          deliveryKey: null,
        },
        recipientId: recipient === undefined ? null : world.personId(recipient),
      });
    });
  const commander = (date: Date) => cast.inRole("commander", date);
  const scribe = (date: Date) => cast.inRole("scribe", date) ?? commander(date);
  const helper = (date: Date) => cast.inRole("participant", date) ?? commander(date);
  const liaison = (date: Date) => cast.inRole("liaison", date) ?? helper(date);
  const soon = (hours: number) => hoursAfter(reportedAt, Math.min(hours, duration * 0.7));
  at(hoursAfter(reportedAt, 5 * second), (date) => {
    const text = `${name}: ${scenario.title}. ${nameOf(commander(date) ?? scenario.reporter)} commands.`;
    const welcome = { conversationId, authorId: null, recipientId: null, deliveryKey: "welcome" };
    said.push({ id: world.next("message"), ...welcome, at: date, text });
  });
  say(soon(0.02), () => scenario.reporter, scenario.impact);
  const opener = [
    "I have command.",
    "I am here and take command.",
    "Looking. I command until further notice.",
  ];
  say(soon(0.06), commander, random.pick(opener));
  say(soon(random.between(0.4, 0.6)), helper, scenario.finding);
  say(soon(random.between(0.65, 0.8)), scribe, `Written down: ${scenario.action}`);
  if (scenario.needs !== nothing) say(soon(0.9), commander, scenario.needs);
  say(
    soon(1.1),
    liaison,
    random.pick(["Support knows.", "The status page says so.", "Shops have been told."]),
  );
  if (scenario.priority === "High") {
    const ask = "Can you take over from me tonight, should it last that long?";
    say(soon(1.3), commander, ask, () => helper(soon(1.3)));
  }
  if (stableAt) {
    say(hoursAfter(stableAt, -0.02), helper, scenario.resolution);
    say(hoursAfter(stableAt, 0.01), commander, "Stable. Let us watch it for a while before we close it.");
  }
  if (closedAt)
    say(hoursAfter(closedAt, -0.02), commander, "Closing. Thank you all, the review is on its way.");
  return said;
}

const nothing = "Nothing at the moment.";

/** Status reports, and the reminders to those who let one be late. */
export function reports(scene: Scene): { reports: ExampleReport[]; reminders: Example["reminders"] } {
  const { scenario, reportedAt, stableAt, end, random, id, cast, tell, at, world } = scene;
  const interval = reportHours[scenario.priority];
  const written: ExampleReport[] = [];
  const reminders: Example["reminders"] = [];
  const write = (date: Date, texts: Pick<ExampleReport, "conditions" | "actions" | "needs">) =>
    at(date, () => {
      const author = cast.inRole("commander", date) ?? scenario.reporter;
      const row = { id: world.next("report"), incidentId: id, authorId: world.personId(author), ...texts };
      written.push({ ...row, createdAt: date });
      const told = { at: date, actor: addressOf(author), kind: "report.written" };
      tell({ ...told, description: "Status report written", data: { report_id: row.id } });
    });
  const texts = (date: Date) =>
    hoursBetween(reportedAt, date) < interval
      ? { conditions: scenario.impact, actions: "We look for the cause.", needs: scenario.needs }
      : {
          conditions: `${scenario.impact} ${scenario.finding}`,
          actions: scenario.action,
          needs: scenario.needs,
        };
  for (const date of reportTimes(scene, interval)) write(date, texts(date));
  if (stableAt)
    write(hoursAfter(stableAt, 0.2), {
      ...{ conditions: "Stable.", actions: scenario.resolution, needs: nothing },
    });
  const late = scenario.quiet ?? 0;
  if (!stableAt && late > 2 * interval) {
    const anchor = hoursBefore(end, late);
    // One of them was sent; the next one is due.
    at(hoursAfter(anchor, interval), (remindedAt) => {
      reminders.push({ incidentId: id, anchor, k: 1, remindedAt });
      const commander = cast.inRole("commander", remindedAt) ?? scenario.reporter;
      const description = `${nameOf(commander)} reminded of the status report`;
      const told = { actor: "worker", source: "incident-status-report-reminder", kind: "reminder.sent" };
      tell({ ...told, at: remindedAt, description, data: { individual_id: world.personId(commander) } });
    });
  }
  return { reports: written, reminders };

  function reportTimes({ reopened }: Scene, hours: number): Date[] {
    const quiet = stableAt ? hours * random.between(0.2, 0.8) : scenario.quiet;
    if (quiet === undefined) return [];
    const last = hoursBetween(reportedAt, end) - quiet;
    const times: Date[] = [];
    for (
      let back = last;
      back > 0.2 && times.length < mostReports;
      back -= hours * random.between(0.75, 0.95)
    ) {
      times.unshift(hoursAfter(reportedAt, back));
    }
    // Nobody reports while it is stable, and a short one has a report as well.
    const active = times.filter(
      (date) => !reopened || date < reopened.stableAt || date > reopened.reopenedAt,
    );
    return active.length > 0 ? active : [hoursAfter(reportedAt, hoursBetween(reportedAt, end) * 0.5)];
  }
}
