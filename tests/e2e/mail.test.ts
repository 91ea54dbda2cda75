import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { delivery } from "../../drizzle/schema/index.ts";
import { addressOf, type MailWorld, people, startMailWorld } from "../support/domain/mail_world.ts";
import { until } from "../support/process/until.ts";
import { startMailServer, type TestMail, type TestMailServer, textOf, wordsOf } from "../support/smtp.ts";

// What three tasks tell people, from two workers' processes to a real mail server that does not have a good day: of each
// mail to Bob it refuses the first attempt with 451, to Carol it closes the connection when it has all of it, to Dave it
// takes its time, and Erin it does not know.

/** With the deliveries of each. */
const tasks = [
  ["incident-status-report-reminder", 2],
  ["incident-task-reminders", 5],
  ["incident-daily-summary", 5],
] as const;
const refusal = (responseCode: number, to: string) =>
  Object.assign(new Error(`${to}: hunter2`), { responseCode });

let began: number;
/** Of the summary. */
let day: string;
let knowsErin = false;
/** Those that were sent to their end, also the ones that the server did not take. */
const attempts: TestMail[] = [];
let server: TestMailServer;
let world: MailWorld;
beforeAll(async () => {
  began = Date.now();
  server = await startMailServer(
    {
      onRcptTo: ({ address }, _session, done) =>
        done(address === addressOf("erin") && !knowsErin ? refusal(550, address) : undefined),
    },
    async (mail) => {
      attempts.push(mail);
      const [to = ""] = mail.to;
      const id = mail.headers["message-id"];
      const isFirst = attempts.filter(({ headers }) => headers["message-id"] === id).length === 1;
      if (to === addressOf("dave")) await Bun.sleep(1000);
      if (to === addressOf("bob") && isFirst) return refusal(451, to);
      return to === addressOf("carol") && isFirst ? "cut" : "taken";
    },
  );
  world = await startMailWorld(server.port);
}, 120_000);
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** To whom and what, each once for each mail that was taken. */
const taken = () => server.received.map(({ to, headers }) => `${to.join()}: ${headers.subject}`).sort();

/** What each of these gets when all goes well. */
const mailsTo = (names: readonly string[]) =>
  names
    .flatMap((name) =>
      [
        ...(name === "zoe" ? ["INC-1: a status report is due"] : []),
        ...["INC-1: a task of yours is overdue", "INC-2: a status report is due"],
        `Incidents on ${day}: 2 active, 0 stable or closed in the last 24 hours`,
      ].map((subject) => `${addressOf(name)}: ${subject}`),
    )
    .sort();

/** Every attempt is due now, and not when the pauses between them have passed. */
const hurry = () =>
  world.db.execute(
    sql`update delivery set due_at = now() where state = 'Queued' and lease_until is null and due_at > now()`,
  );

test("each mail comes once, whatever the server does; what it refuses for good is dead with the reason", async () => {
  for (const [name, count] of tasks) {
    const run = world.svc("scheduler", "start", name, "--eager");
    expect([await run.exit(60), run.stdout]).toEqual([0, `${name}: ${count} done, 0 skipped, 0 failed\n`]);
  }
  const [summary] = await world.db.select().from(delivery).where(eq(delivery.task, "incident-daily-summary"));
  day = summary!.key.split("/")[1]!;
  expect(Date.parse(day)).toBeWithin(began - 86_400_000, Date.now() + 1);
  const workers = [world.svc("scheduler", "start"), world.svc("scheduler", "start")];
  const states = async () => (await world.db.select().from(delivery)).map(({ state }) => state);
  await until(
    "every delivery to end",
    async () => {
      await hurry();
      await Bun.sleep(200);
      return !(await states()).includes("Queued");
    },
    240,
  );
  expect(taken()).toEqual(mailsTo(people.filter((name) => name !== "erin")));
  const list = world.svc("scheduler", "deliveries", "--state", "Dead", "--json");
  expect(await list.exit(60)).toBe(0);
  const { counts, deliveries } = JSON.parse(list.stdout);
  // What went to everyone is one for each, and Erin's alone is dead: at once, as are those to her by name.
  expect(counts).toEqual({ Queued: 0, Done: 13, Dead: 3 });
  for (const one of deliveries)
    expect(one).toMatchObject({ attempts: 1, last_error: "mail failed: the mail was not sent (550)" });

  knowsErin = true;
  const again = world.svc("scheduler", "deliveries", "--all-dead");
  expect([await again.exit(60), again.stdout]).toEqual([0, "Queued 3\n"]);
  await until("what was dead", async () => !/Dead|Queued/.test((await states()).join()), 60);
  expect(taken()).toEqual(mailsTo(people));
  for (const worker of workers) {
    worker.kill("SIGTERM");
    expect(await worker.exit(60)).toBe(0);
    expect(worker.output).not.toContain("hunter2");
    for (const name of people) expect(worker.output).not.toContain(addressOf(name));
  }
}, 400_000);

test("a mail that is sent again is the same mail, and each other one is another", () => {
  const ids = (mails: readonly TestMail[]) => mails.map(({ headers }) => headers["message-id"]);
  expect(new Set(ids(server.received)).size).toBe(server.received.length);
  expect(new Set(ids(attempts))).toEqual(new Set(ids(server.received)));
  expect(attempts).toHaveLength(server.received.length + mailsTo(["bob", "carol"]).length);
});

test("the headers say who, to whom alone, when, and that nobody is to answer", () => {
  for (const { to, headers } of server.received) {
    expect(headers).toMatchObject({
      ...{ to: to[0], "auto-submitted": "auto-generated", "mime-version": "1.0" },
      "content-type": "text/plain; charset=utf-8",
    });
    expect(headers.from).toMatch(/^[\x20-\x7e]+ <svc@example\.com>$/);
    expect(wordsOf(headers.from)).toBe("Störungsdienst <svc@example.com>");
    expect(headers["message-id"]).toMatch(/^<[0-9a-f]{32}@example\.com>$/);
    expect(Date.parse(headers.date!)).toBeWithin(began - 1000, Date.now() + 1000);
    expect(Object.keys(headers).filter((name) => /^(cc|bcc|sender|reply-to)$/.test(name))).toEqual([]);
  }
});

test("the texts are what the tasks say, letter by letter", () => {
  const textTo = (name: string, subject: RegExp) => {
    const found = server.received.find(
      ({ to, headers }) => to[0] === addressOf(name) && subject.test(headers.subject!),
    );
    return found && textOf(found);
  };
  expect(textTo("zoe", /^INC-1: a status/)).toStartWith(
    "INC-1: Kühlhaus zu warm – 8 °C 🧊 (priority Hoch) is Active, and has had no status report since it was reported 1 day 3 hours ago.\n\nReport the current state:",
  );
  expect(textTo("dave", /task of yours/)).toMatch(
    /^This task is overdue\. .+:\n\n- Tür dave \(INC-1: Kühlhaus zu warm – 8 °C 🧊\), due [-\d]+ [\d:]+ UTC\n {2}https:\/\/svc\.example\.com\/tasks\/\d+$/,
  );
  expect(textTo("carol", /^Incidents on/)).toMatch(
    /^Active: 2\n\n(- .+\n {2}https:\/\/svc\.example\.com\/incidents\/\d\n){2}\nStable or closed in the last 24 hours: none\.$/,
  );
  expect(textTo("carol", /^Incidents on/)).toContain(
    "- INC-1: Kühlhaus zu warm – 8 °C 🧊 (priority Hoch, for 1 day 3 hours, commander Zoë Ångström, no status report yet)",
  );
});
