import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { delivery } from "../../drizzle/schema/index.ts";
import { addressOf, type MailWorld, people, startMailWorld } from "../support/domain/mail_world.ts";
import { until } from "../support/process/until.ts";
import { startMailServer, type TestMail, type TestMailServer, textOf, wordsOf } from "../support/smtp.ts";

// The messages of three tasks, from two worker processes to a real mail server with problems: it refuses the first attempt
// of each mail to Bob with 451, closes the connection after it has received a mail to Carol, is slow for Dave, and does not
// know Erin.

/** The tasks, with the number of deliveries of each. */
const tasks = [
  ["incident-status-report-reminder", 2],
  ["incident-task-reminders", 5],
  ["incident-daily-summary", 5],
] as const;
const refusal = (responseCode: number, to: string) =>
  Object.assign(new Error(`${to}: hunter2`), { responseCode });

let began: number;
/** The day of the summary. */
let day: string;
let knowsErin = false;
/** Mails that were sent completely, including those that the server did not accept. */
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

/** Recipient and subject of each accepted mail. */
const taken = () => server.received.map(({ to, headers }) => `${to.join()}: ${headers.subject}`).sort();

/** The mails that each person gets if everything works. */
const mailsTo = (names: readonly string[]) =>
  names
    .flatMap((name) =>
      [
        ...(name === "zoe" ? ["INC-1: a status report is due"] : []),
        "INC-1: a task of yours is overdue",
        "INC-2: a status report is due",
        `Incidents on ${day}: 2 active, 0 stable or closed in the last 24 hours`,
      ].map((subject) => `${addressOf(name)}: ${subject}`),
    )
    .sort();

/** Makes every attempt due now, without the pauses between them. */
const hurry = () =>
  world.db.execute(
    sql`update delivery set due_at = now() where state = 'Queued' and lease_until is null and due_at > now()`,
  );

test("each mail arrives once despite failures; permanently refused ones are dead with the reason", async () => {
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
  // Mail to everyone was split, and only Erin's part is dead, immediately, as are the mails to her alone.
  expect(counts).toEqual({ Queued: 0, Done: 13, Dead: 3, Obsolete: 0 });
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

test("a resent mail has the same Message-ID, and all others differ", () => {
  const ids = (mails: readonly TestMail[]) => mails.map(({ headers }) => headers["message-id"]);
  expect(new Set(ids(server.received)).size).toBe(server.received.length);
  expect(new Set(ids(attempts))).toEqual(new Set(ids(server.received)));
  expect(attempts).toHaveLength(server.received.length + mailsTo(["bob", "carol"]).length);
});

test("the headers have the sender, one recipient, the date, and suppress automatic replies", () => {
  for (const { to, headers } of server.received) {
    expect(headers).toMatchObject({
      to: to[0],
      "auto-submitted": "auto-generated",
      "mime-version": "1.0",
      "content-type": "text/plain; charset=utf-8",
    });
    expect(headers.from).toMatch(/^[\x20-\x7e]+ <svc@example\.com>$/);
    expect(wordsOf(headers.from)).toBe("Störungsdienst <svc@example.com>");
    expect(headers["message-id"]).toMatch(/^<[0-9a-f]{32}@example\.com>$/);
    expect(Date.parse(headers.date!)).toBeWithin(began - 1000, Date.now() + 1000);
    expect(Object.keys(headers).filter((name) => /^(cc|bcc|sender|reply-to)$/.test(name))).toEqual([]);
  }
});

test("the texts are exactly those of the tasks", () => {
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
