import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { type ActivePlugin, callPlugin } from "../../core/plugin/call.ts";
import type { IncidentFacts } from "../../core/plugin.ts";
import {
  incident,
  participant,
  participantGroup,
  participantGroupMember,
  team,
} from "../../drizzle/schema/index.ts";
import { literally } from "../../platform/markdown.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { type PluginTest, startPluginTest } from "../../tests/support/domain/plugins.ts";
import { startMailServer, type TestMailServer, textOf } from "../../tests/support/smtp.ts";

let its: PluginTest;
let ids: IncidentIds;
let facts: IncidentFacts;
let server: TestMailServer;
/** Recipients that the server refuses, with the code of its answer. */
const refused = new Map<string, number>();

beforeAll(async () => {
  its = await startPluginTest();
  const { db, clock } = its.context;
  ids = await insertIncident(db, clock.now());
  facts = await its.factsOf(ids.incidentId);
  await db.update(team).set({ email: "storage@example.com" }).where(eq(team.id, ids.teamId));
  const group = {
    incidentId: ids.incidentId,
    pluginSlug: "mailing-list",
    name: "inc-1",
    createdAt: clock.now(),
  };
  const [list] = await db.insert(participantGroup).values(group).returning();
  const member = { participantGroupId: list!.id, teamId: ids.teamId, addedAt: clock.now() };
  await db.insert(participantGroupMember).values(member);
  server = await startMailServer({
    onRcptTo: ({ address }, _session, done) => {
      const responseCode = refused.get(address);
      done(responseCode ? Object.assign(new Error(`no ${address}`), { responseCode }) : undefined);
    },
    onAuth: ({ username, password }, _session, done) =>
      password === "p@ss" ? done(null, { user: username }) : done(new Error("no")),
  });
});
beforeEach(async () => {
  refused.clear();
  server.received.length = 0;
  await setVisibility("Open");
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await its[Symbol.asyncDispose]();
});

async function setVisibility(visibility: "Open" | "Restricted") {
  await its.context.db.update(incident).set({ visibility }).where(eq(incident.id, ids.incidentId));
  facts = { ...facts, visibility };
}

async function open(url = `smtp://127.0.0.1:${server.port}`, more: Record<string, string> = {}) {
  const plugins = await its.choose({
    SVC_PLUGIN_CONVERSATION: "mail",
    SVC_PLUGIN_MAIL_URL: url,
    SVC_PLUGIN_MAIL_FROM: "svc <svc@example.com>",
    ...more,
  });
  return plugins.ofType("conversation")[0]!;
}

const message = { subject: "INC-1: Disk full", text: "**Alice** commands.\n" };
type Mailing = ActivePlugin<"conversation">;
/** Sends to one recipient. */
const send = (plugin: Mailing, key = "k1", recipient = `individual-${ids.bob}`) =>
  callPlugin(plugin, "send", { conversation: { incident: facts }, message, recipient }, { key });
/** The recipients of a message to everyone. */
async function asked(plugin: Mailing) {
  const outcome = await callPlugin(plugin, "recipients", { conversation: { incident: facts } });
  return outcome.ok ? outcome.value : [outcome.detail];
}
/** Sends to each recipient, under a separate key. */
async function sendAll(plugin: Mailing, key = "k1") {
  for (const one of await asked(plugin)) await send(plugin, `${key}/${one}`, one);
}
const recipients = () => server.received.flatMap(({ to }) => to).sort();
const person = (name: string, id: number) => ({ id, name, email: `${name}@example.com` });

test("each participant and each team of the list gets a separate mail", async () => {
  const plugin = await open(undefined, { SVC_PLUGIN_MAIL_REPLY_TO: "oncall@example.com" });
  expect(await asked(plugin)).toEqual([
    `individual-${ids.alice}`,
    `individual-${ids.bob}`,
    `team-${ids.teamId}`,
  ]);
  await sendAll(plugin);
  expect(recipients()).toEqual(["alice@example.com", "bob@example.com", "storage@example.com"]);
  for (const { to, headers, raw } of server.received) {
    expect(headers).toMatchObject({
      from: "svc <svc@example.com>",
      to: to[0],
      "reply-to": "oncall@example.com",
      subject: "INC-1: Disk full",
      "auto-submitted": "auto-generated",
      date: "Fri, 20 Nov 2026 12:00:00 +0000",
    });
    expect(raw.match(/@example\.com/g)).toHaveLength(4);
    expect(raw).toEndWith("\r\n\r\nAlice commands.\r\n");
  }
  const idsOfMails = server.received.map(({ headers }) => headers["message-id"]!);
  expect(new Set(idsOfMails).size).toBe(3);
  for (const id of idsOfMails) expect(id).toMatch(/^<[0-9a-f]{32}@example\.com>$/);
});

test("former participants get no mail; create, add, archive and reopen do nothing", async () => {
  const { db, clock } = its.context;
  const plugin = await open();
  await db.update(participant).set({ leftAt: clock.now() }).where(eq(participant.id, ids.reporter));
  await sendAll(plugin, "left");
  // They left after the call of `recipients`.
  expect(await send(plugin, "late")).toMatchObject({ ok: false, permanent: true });
  await db.update(participant).set({ leftAt: null }).where(eq(participant.id, ids.reporter));
  expect(recipients()).toEqual(["alice@example.com", "storage@example.com"]);
  const conversation = { incident: facts };
  for (const done of [
    await callPlugin(plugin, "create", { incident: facts }),
    await callPlugin(plugin, "add", { conversation, people: [person("bob", ids.bob)] }),
    await callPlugin(plugin, "remove", { conversation, people: [person("bob", ids.bob)] }),
    await callPlugin(plugin, "restrict", { conversation, people: [] }),
    await callPlugin(plugin, "archive", { conversation }),
    await callPlugin(plugin, "reopen", { conversation }),
  ]) {
    expect(done).toMatchObject({ ok: true });
  }
  expect(server.received).toHaveLength(2);
});

describe("of a Restricted incident", () => {
  test("only participants get mail, with only its name as subject", async () => {
    await setVisibility("Restricted");
    await sendAll(await open(), "restricted");
    expect(recipients()).toEqual(["alice@example.com", "bob@example.com"]);
    for (const { headers } of server.received) expect(headers.subject).toBe(facts.name);
  });

  test("teams are excluded by its current visibility, not by the one passed to the call", async () => {
    await setVisibility("Restricted");
    facts = { ...facts, visibility: "Open" };
    const plugin = await open();
    expect(await send(plugin, "late", `team-${ids.teamId}`)).toMatchObject({
      ok: false,
      permanent: true,
      detail: "mail failed: this recipient no longer receives messages about the incident",
    });
    await sendAll(plugin, "late");
    expect(recipients()).toEqual(["alice@example.com", "bob@example.com"]);
  });

  test("nobody else gets a direct message", async () => {
    const plugin = await open();
    const direct = (id: number) =>
      callPlugin(plugin, "direct", { person: person("carol", id), message, incident: facts });
    expect(await direct(999_999)).toMatchObject({ ok: true });
    await setVisibility("Restricted");
    expect(await direct(999_999)).toMatchObject({
      ok: false,
      detail: expect.stringContaining("is not a participant"),
    });
    expect(await direct(ids.alice)).toMatchObject({ ok: true });
    expect(server.received.map(({ headers }) => headers.subject)).toEqual([message.subject, facts.name]);
  });
});

test("teams without an address, or of another list, are not recipients", async () => {
  const { db, clock } = its.context;
  const stamps = { createdAt: clock.now(), updatedAt: clock.now() };
  const [silent, other] = await db
    .insert(team)
    .values([
      { name: "Silent", ...stamps },
      { name: "Other", email: "other@example.com", ...stamps },
    ])
    .returning();
  const lists = await db.select().from(participantGroup).orderBy(participantGroup.pluginSlug);
  expect(lists.map(({ pluginSlug }) => pluginSlug)).toEqual(["list", "mailing-list"]);
  const members = await db
    .insert(participantGroupMember)
    .values([
      { participantGroupId: lists[0]!.id, teamId: other!.id, addedAt: clock.now() },
      { participantGroupId: lists[1]!.id, teamId: silent!.id, addedAt: clock.now() },
    ])
    .returning();
  expect((await asked(await open())).filter((one) => one.startsWith("team"))).toEqual([`team-${ids.teamId}`]);
  for (const { id } of members)
    await db.delete(participantGroupMember).where(eq(participantGroupMember.id, id));
});

test("recipients with the same address count once", async () => {
  const { db } = its.context;
  const setEmail = (email: string) => db.update(team).set({ email }).where(eq(team.id, ids.teamId));
  await setEmail("bob@example.com");
  expect(await asked(await open())).toEqual([`individual-${ids.alice}`, `individual-${ids.bob}`]);
  await setEmail("storage@example.com");
});

test("rejects messages without a recipient, or to an unknown one", async () => {
  const plugin = await open();
  const conversation = { incident: facts };
  expect(await callPlugin(plugin, "send", { conversation, message })).toMatchObject({ ok: false });
  for (const recipient of ["individual-0", "team", "bob@example.com"])
    expect(await send(plugin, "k", recipient)).toMatchObject({ ok: false, permanent: true });
  expect(server.received).toEqual([]);
});

test("Message-ID stays the same for mails from before deliveries were split", async () => {
  const plugin = await open();
  await send(plugin, `t/w/conversation/mail/individual-${ids.bob}`);
  const before = new Bun.CryptoHasher("sha256")
    .update(JSON.stringify(["t/w/conversation/mail", "bob@example.com"]))
    .digest("hex");
  expect(server.received[0]!.headers["message-id"]).toStartWith(`<${before.slice(0, 32)}@`);
});

test("a retried mail has the same Message-ID, also from another process", async () => {
  const plugin = await open();
  refused.set("bob@example.com", 451);
  const first = await send(plugin, "again");
  expect(first).toMatchObject({ ok: false, detail: "mail failed: the mail was not sent (451)" });
  expect(JSON.stringify([first, its.logged])).not.toContain("bob@example.com");
  refused.clear();
  for (const one of [plugin, await open()]) expect(await send(one, "again")).toMatchObject({ ok: true });
  const idsOfMails = server.received.map(({ headers }) => headers["message-id"]);
  expect([idsOfMails.length, new Set(idsOfMails).size]).toEqual([2, 1]);
});

describe("a refusal", () => {
  const failing = async (key: string, code?: number, plugin = open()) => {
    if (code !== undefined) refused.set("bob@example.com", code);
    const outcome = await send(await plugin, key);
    return outcome.ok ? outcome : { detail: outcome.detail, permanent: outcome.permanent };
  };

  test("of a recipient is permanent", async () => {
    expect(await failing("one", 550)).toEqual({
      detail: "mail failed: the mail was not sent (550)",
      permanent: true,
    });
    expect(recipients()).toEqual([]);
  });

  test.each([[421], [451], [500], [504], [530], [552]])("of %i may pass", async (code) => {
    expect(await failing(`code ${code}`, code)).toMatchObject({ permanent: false });
  });

  test.each([[550], [553], [554]])(
    "of the sender with %i is transient, because the operator can fix it",
    async (responseCode) => {
      await using strict = await startMailServer({
        onMailFrom: (_, _session, done) => done(Object.assign(new Error("not you"), { responseCode })),
      });
      const plugin = open(`smtp://127.0.0.1:${strict.port}`);
      expect(await failing(`sender ${responseCode}`, undefined, plugin)).toMatchObject({
        detail: `mail failed: the mail was not sent (${responseCode})`,
        permanent: false,
      });
    },
  );

  test("of our credentials is transient, because the operator can fix it", async () => {
    const stranger = open(`smtp://svc:hunter2@127.0.0.1:${server.port}`);
    expect(await failing("auth", undefined, stranger)).toMatchObject({ permanent: false });
  });

  test("of a text is permanent; of an invalid address it looks like a protocol error", async () => {
    await using strict = await startMailServer({}, () =>
      Object.assign(new Error("spam"), { responseCode: 554 }),
    );
    const plugin = open(`smtp://127.0.0.1:${strict.port}`);
    expect(await failing("text", undefined, plugin)).toMatchObject({ permanent: true });
    const nobody = { ...person("eve", 1), email: "e\rve@example.com" };
    const call = callPlugin(await open(), "direct", { person: nobody, message });
    const detail = "mail failed: the mail was not sent (501)";
    expect(await call).toMatchObject({ ok: false, detail, permanent: false });
  });
});

test("the headers of a sender with an international domain are ASCII", async () => {
  await send(await open(undefined, { SVC_PLUGIN_MAIL_FROM: "Störung <svc@bücher.example>" }));
  const { headers } = server.received[0]!;
  expect(headers["message-id"]).toEndWith("@xn--bcher-kva.example>");
  expect(Object.values(headers).join("")).toMatch(/^[ -~]+$/);
});

test("text is sent as it was written, even if it looks like markup", async () => {
  const title = String.raw`disk_full *now* [see](x) a\_b <b> \`rm -rf\` C:\temp ~2|3~`;
  const text = `- ${literally(title)}\n  https://svc.example.com/incidents/1`;
  await callPlugin(await open(), "direct", { person: person("dave", 1), message: { subject: "s", text } });
  expect(textOf(server.received[0]!)).toBe(`- ${title}\n  https://svc.example.com/incidents/1`);
});

test("headers cannot be injected", async () => {
  const plugin = await open();
  const evil = "x\r\nBcc: eve@example.com\r\n\r\nbody\u2028y\0z";
  const to = person("dave", 1);
  await callPlugin(plugin, "direct", {
    person: to,
    message: { subject: evil, text: "a\r\n.\r\nMAIL FROM:<x>" },
  });
  await callPlugin(plugin, "direct", { person: { ...to, email: "dave,eve@example.com" }, message });
  for (const mail of server.received) expect(mail.headers.bcc).toBeUndefined();
  expect(server.received[0]!.headers.subject).toBe("x Bcc: eve@example.com body y z");
  expect(server.received[0]!.raw).toContain("\r\n.\r\nMAIL FROM:<x>");
  expect(recipients()).not.toContain("eve@example.com");
});

describe("the server", () => {
  test("receives user and password", async () => {
    await sendAll(await open(`smtp://svc:p%40ss@127.0.0.1:${server.port}`), "auth");
    expect(server.received.map(({ user }) => user)).toEqual(["svc", "svc", "svc"]);
  });

  test("may refuse them, and the error does not contain them", async () => {
    const outcome = await send(await open(`smtp://svc:hunter2@127.0.0.1:${server.port}`), "wrong");
    expect(outcome).toMatchObject({ ok: false, detail: "mail failed: the mail was not sent (535)" });
    expect(JSON.stringify([outcome, its.logged])).not.toContain("hunter2");
  });

  test("may be down when svc starts", async () => {
    const outcome = await send(await open("smtp://127.0.0.1:1"), "away");
    expect(outcome).toMatchObject({
      ok: false,
      detail: expect.stringContaining("the mail was not sent (E"),
    });
  });

  test("gets no mail if its certificate is not trusted", async () => {
    // Without a certificate, smtp-server uses its built-in one for "localhost".
    await using tls = await startMailServer({ secure: true, disabledCommands: [] });
    const outcome = await send(await open(`smtps://svc:p@127.0.0.1:${tls.port}`), "tls");
    expect(outcome).toMatchObject({ ok: false });
    expect(tls.received).toEqual([]);
  });
});

describe("configuration rejects", () => {
  test.each([
    ["another protocol", "https://mail.example.com", "From <a@b.c>"],
    ["a path", "smtp://mail.example.com/x", "a@b.c"],
    ["options of nodemailer's", "smtp://mail.example.com?logger=true", "a@b.c"],
    ["a broken escape", "smtp://a:hunter2%@mail.example.com", "a@b.c"],
    ["two senders", "smtp://mail.example.com", "a@b.c, d@e.f"],
    ["a sender of two lines", "smtp://mail.example.com", "a\r\nBcc: x <a@b.c>"],
  ])("%s", async (_, url, from) => {
    const opening = open(url, { SVC_PLUGIN_MAIL_FROM: from });
    await expect(opening).rejects.toThrow(/SVC_PLUGIN_MAIL_|the url/);
    await expect(opening).rejects.not.toThrow("hunter2");
  });

  test("no sender", async () => {
    const chosen = { SVC_PLUGIN_CONVERSATION: "mail", SVC_PLUGIN_MAIL_URL: "smtp://mail.example.com" };
    await expect(its.choose(chosen)).rejects.toThrow("SVC_PLUGIN_MAIL_FROM is not set");
  });
});
