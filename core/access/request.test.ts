import { beforeAll, describe, expect, test } from "bun:test";
import { eq, inArray, sql } from "drizzle-orm";
import { accessRequest, delivery, individual } from "../../drizzle/schema/index.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { inTheWay } from "../../tests/support/database/blocked.ts";
import { noteAsked, rowsRead } from "../../tests/support/database/statements.ts";
import {
  type AccessWorld,
  startAccessWorld,
  useFakeCredentials,
} from "../../tests/support/domain/access_world.ts";
import { usualRole } from "../../tests/support/domain/usual_role.ts";
import { personOf } from "../../tests/support/http/people.ts";
import { until } from "../../tests/support/process/until.ts";

let world: AccessWorld;
const { credential, makeRole } = useFakeCredentials((given) => {
  world = given;
});

describe("a request", () => {
  const ask = async (role: string, more: object = {}) => {
    const wanted = { role, reason: `$(reboot) '; drop table token; -- "x" \`id\``, ...more };
    const { http, body } = await world.alice.call("POST", "/access/requests/", wanted);
    expect([http, body.reason]).toEqual([201, wanted.reason]);
    return body.id as number;
  };
  const decide = (who: AccessWorld["admin"], id: number, verb: string) =>
    who.call("POST", `/access/requests/${id}/${verb}`);

  test("is approved once by concurrent approvals, and a cancellation counts before or after it", async () => {
    const other = await personOf(world.server, "root2@example.com", ["admin"]);
    for (let round = 0; round < 5; round += 1) {
      const id = await ask(await makeRole({ approval: "admin" }));
      const answers = await Promise.all([
        decide(world.admin, id, "approve"),
        decide(other, id, "approve"),
        decide(world.alice, id, "cancel"),
      ]);
      const [first, second, cancelled] = answers.map(({ http }) => http);
      expect([200, 409]).toContain(first!);
      expect([second, cancelled]).toEqual([first === 200 ? 409 : expect.any(Number), 200]);
      const { body } = await world.alice.call("GET", `/access/requests/${id}`);
      expect(body.state).toBe("Cancelled");
      const [log] = await world.server.db.execute<{ n: number }>(
        sql`select count(*)::int as n from audit_log where subject = ${`request/${id}`} and action <> 'access.requested'`,
      );
      expect(log!.n).toBe(answers.filter(({ http }) => http === 200).length);
    }
  });

  test("cannot be decided by the user who made it, even an admin", async () => {
    const role = await makeRole({ approval: "admin", groups: ["*"] });
    const { body } = await world.admin.call("POST", "/access/requests/", { role, reason: "x" });
    for (const verb of ["approve", "deny"]) expect((await decide(world.admin, body.id, verb)).http).toBe(403);
    expect((await world.issue(world.admin, role, { request_id: body.id })).http).toBe(409);
  });

  describe("for a role with approver groups", () => {
    let erik: AccessWorld["admin"];
    let frida: AccessWorld["admin"];
    const options = { approval: "group", approver_groups: ["security", "dba"], approvals_needed: 2 };
    beforeAll(async () => {
      erik = await personOf(world.server, "erik@example.com", ["security"]);
      frida = await personOf(world.server, "frida@example.com", ["dba"]);
    });
    const descriptions = async (id: number) =>
      (
        await world.server.db.execute<{ description: string }>(sql`
          select description from event where data ->> 'request_id' = ${String(id)} and kind = 'access.approved' order by id`)
      ).map(({ description }) => description);

    test("is approved by as many of their members as the role requires", async () => {
      const role = await makeRole(options);
      const id = await ask(role, { incident: world.incident });
      const first = await erik.call("POST", `/access/requests/${id}/approve`, { note: "By phone" });
      expect(first).toMatchObject({
        http: 200,
        body: { state: "Pending", approved_by: ["erik@example.com"], approvals_needed: 2, decided_by: null },
      });
      const again = await decide(erik, id, "approve");
      expect([again.http, again.body.detail]).toEqual([
        409,
        "You already approved this request: it has 1 of 2 approvals",
      ]);
      expect((await world.issue(world.alice, role, { request_id: id })).http).toBe(409);
      expect(await decide(frida, id, "approve")).toMatchObject({
        http: 200,
        body: {
          state: "Approved",
          approved_by: ["erik@example.com", "frida@example.com"],
          decided_by: "frida@example.com",
          note: "By phone",
        },
      });
      expect(await descriptions(id)).toEqual([
        `erik@example.com approved ${role} for alice@example.com (1 of 2)`,
        `frida@example.com approved ${role} for alice@example.com (2 of 2)`,
      ]);
      expect((await world.issue(world.alice, role, { request_id: id })).http).toBe(201);
    });

    test("is not visible to others, and not approved by admins or the commander", async () => {
      const role = await makeRole({ ...options, groups: ["*"] });
      const { body } = await world.bob.call("POST", "/access/requests/", {
        role,
        reason: "x",
        incident: world.incident,
      });
      for (const verb of ["approve", "deny"])
        expect((await decide(world.alice, body.id, verb)).http).toBe(404);
      const refused = await decide(world.admin, body.id, "approve");
      expect([refused.http, refused.body.detail]).toEqual([
        403,
        "Only members of group security or dba can approve it, even though admins can deny it",
      ]);
      const own = await erik.call("POST", "/access/requests/", { role, reason: "x" });
      expect((await decide(erik, own.body.id, "approve")).http).toBe(403);
      expect((await decide(frida, body.id, "approve")).body.state).toBe("Pending");
      const { http, body: denied } = await decide(world.admin, body.id, "deny");
      expect([http, denied.state]).toEqual([200, "Denied"]);
      expect((await decide(erik, body.id, "approve")).http).toBe(409);
    });

    test("records two approvals at once, of which one decides, and refuses the rest", async () => {
      const more = await Promise.all(
        [1, 2, 3].map((n) => personOf(world.server, `dba${n}@example.com`, ["dba"])),
      );
      for (let round = 0; round < 3; round += 1) {
        const id = await ask(await makeRole(options), { incident: world.incident });
        const answers = await Promise.all([erik, frida, ...more].map((who) => decide(who, id, "approve")));
        expect(answers.map(({ http }) => http).sort()).toEqual([200, 200, 409, 409, 409]);
        const states = answers.filter(({ http }) => http === 200).map(({ body }) => body.state);
        expect(states.sort()).toEqual(["Approved", "Pending"]);
        const { body } = await world.alice.call("GET", `/access/requests/${id}`);
        expect(new Set(body.approved_by).size).toBe(2);
        expect((await descriptions(id)).map((text) => text.slice(-8))).toEqual(["(1 of 2)", "(2 of 2)"]);
      }
    });

    test("follows the role as it is at each decision, and counts earlier approvals", async () => {
      const role = await makeRole({ ...options, approvals_needed: 1 });
      const id = await ask(role);
      const change = async (more: object) => {
        const { body } = await world.admin.call("GET", `/access/roles/${role}`);
        return world.admin.call("PUT", `/access/roles/${role}`, { ...body, ...more });
      };
      expect((await change({ approvals_needed: 2 })).http).toBe(200);
      expect((await decide(erik, id, "approve")).body.state).toBe("Pending");
      expect((await change({ approver_groups: ["dba"] })).http).toBe(200);
      expect((await decide(erik, id, "deny")).http).toBe(404);
      expect((await decide(frida, id, "approve")).body.state).toBe("Approved");
    });

    test("notifies their known members of break-glass access, one of whom reviews it", async () => {
      const role = await makeRole({ ...options, incident_required: true, break_glass: true });
      const wanted = { role, reason: "x", incident: world.incident, break_glass: true };
      const { body } = await world.bob.call("POST", "/access/requests/", wanted);
      const told = await world.server.db
        .select({ email: individual.email })
        .from(delivery)
        .innerJoin(individual, eq(individual.id, delivery.individualId))
        .where(eq(delivery.subject, `Break-glass access to ${role}`));
      expect(told.map(({ email }) => email)).toContain("erik@example.com");
      for (const other of ["root@example.com", "alice@example.com"])
        expect(told.map(({ email }) => email)).not.toContain(other);
      expect((await decide(world.admin, body.id, "review")).http).toBe(403);
      expect((await decide(world.alice, body.id, "review")).http).toBe(404);
      expect((await decide(frida, body.id, "review")).http).toBe(200);
    });

    test("warns in the check of a role if fewer of their members are known than it requires", async () => {
      const checked = async (more: object) => {
        const { body } = await world.admin.call("GET", `/access/roles/${await makeRole(more)}/check`);
        return body.problems;
      };
      expect(await checked(options)).toEqual([]);
      expect(await checked({ ...options, approver_groups: ["security"] })).toEqual([
        { problem: expect.stringContaining("(group security)"), warning: true },
      ]);
    });
  });

  test("of an admin's role can require several approvals, also by the commander", async () => {
    const role = await makeRole({ approval: "commander", incident_required: true, approvals_needed: 2 });
    const { body } = await world.bob.call("POST", "/access/requests/", {
      role,
      reason: "x",
      incident: world.incident,
    });
    expect((await decide(world.alice, body.id, "approve")).body.state).toBe("Pending");
    expect((await decide(world.admin, body.id, "approve")).body.state).toBe("Approved");
  });

  test.each([
    ["approver_groups", { approval: "group" }],
    ["approver_groups", { approval: "group", approver_groups: ["*"] }],
    ["approver_groups", { approval: "admin", approver_groups: ["dba"] }],
    ["approvals_needed", { approval: "none", approvals_needed: 2 }],
    ["approvals_needed", { approval: "admin", approvals_needed: 0 }],
  ])("cannot be made for a role whose %s nobody could use: %j", async (field, more) => {
    const role = { ...usualRole, slug: "unusable", description: "", plugin: "fake-credential", settings: {} };
    const { http, body } = await world.admin.call("POST", "/access/roles/", { ...role, ...more });
    expect([http, body.field]).toEqual([400, field]);
  });

  test("cannot be approved or used after its user lost the group", async () => {
    const { server } = world;
    const role = await makeRole({ approval: "admin" });
    const [pending, approved] = [await ask(role), await ask(role)];
    expect((await decide(world.admin, approved, "approve")).http).toBe(200);
    server.clock.advance(1);
    const without = await personOf(server, "alice@example.com", ["other"]);
    const { http, body } = await decide(world.admin, pending, "approve");
    expect([http, body.detail]).toEqual([409, expect.stringContaining("no longer in a group")]);
    // Alice's older token still has the group.
    for (const [who, status] of [
      [world.alice, 409],
      [without, 404],
    ] as const)
      expect((await world.issue(who, role, { request_id: approved })).http).toBe(status);
    server.clock.advance(1);
    world.alice = await personOf(server, "alice@example.com", ["oncall"]);
  });

  test("of a participant cannot be used after they left the incident, even if they can read it", async () => {
    const { server, ids, incident: name } = world;
    const carol = await personOf(server, "carol@example.com", ["oncall"]);
    const participants = `/incidents/${ids.incidentId}/participants`;
    const { body: joined } = await carol.call("POST", `${participants}/`, { email: "carol@example.com" });
    const role = await makeRole({ approval: "admin" });
    const wanted = { role, reason: "again", incident: name };
    const { body: request } = await carol.call("POST", "/access/requests/", wanted);
    expect((await decide(world.admin, request.id, "approve")).http).toBe(200);
    const issue = () => world.issue(carol, role, { request_id: request.id });
    expect((await issue()).http).toBe(201);
    await carol.call("POST", `${participants}/${joined.id}/leave`);
    const { http, body } = await issue();
    expect([http, body.detail]).toEqual([409, expect.stringContaining("no longer takes part")]);
  });

  test("for break-glass access notifies only the approvers, and is listed until another user reviews it", async () => {
    const participants = `/incidents/${world.ids.incidentId}/participants/`;
    expect((await world.alice.call("POST", participants, { email: "dora@example.com" })).http).toBe(201);
    const role = await makeRole({ approval: "commander", incident_required: true, break_glass: true });
    const reason = "[Review it](https://phish.example)";
    const wanted = { role, reason, incident: world.incident, break_glass: true };
    const { body } = await world.bob.call("POST", "/access/requests/", wanted);
    const id = body.id as number;
    const { http } = await world.issue(world.bob, role, { request_id: id });
    expect(http).toBe(201);
    // The commander and the admins, who take part in no incident, but not the user.
    const told = await world.server.db
      .select({ email: individual.email, text: delivery.text })
      .from(delivery)
      .innerJoin(individual, eq(individual.id, delivery.individualId))
      .where(eq(delivery.subject, `Break-glass access to ${role}`));
    expect(told.map(({ email }) => email).sort()).toEqual([
      "alice@example.com",
      "root2@example.com",
      "root@example.com",
    ]);
    // People's text is literal in Markdown.
    expect(told[0]!.text).toContain(": \\[Review it\\](https://phish.example)\n");
    const listed = async () => {
      const { body } = await world.admin.call("GET", "/access/requests/?unreviewed=true");
      return body.items.some((one: { id: number }) => one.id === id);
    };
    expect((await decide(world.bob, id, "review")).http).toBe(403);
    expect(await listed()).toBe(true);
    expect((await decide(world.admin, id, "review")).http).toBe(200);
    expect(await listed()).toBe(false);
  });

  test("cannot be approved after it expired, even before a worker marks it Expired", async () => {
    // This world has no worker.
    await using other = await startAccessWorld(pluginsOf(credential));
    const role = await other.makeRole({ plugin: "fake-credential", settings: {}, approval: "admin" });
    const { body: request } = await other.bob.call("POST", "/access/requests/", { role, reason: "again" });
    await other.server.db
      .update(accessRequest)
      .set({ expiresAt: sql`now() - interval '1 second'` })
      .where(eq(accessRequest.id, request.id));
    const { http, body } = await decide(other.admin, request.id, "approve");
    expect([http, body.detail]).toEqual([409, "The request has expired"]);
  });

  test("expires without a decision, which the audit log records", async () => {
    const { db } = world.server;
    const id = await ask(await makeRole({ approval: "admin" }));
    await db
      .update(accessRequest)
      .set({ expiresAt: sql`now()` })
      .where(eq(accessRequest.id, id));
    const stateOf = async () =>
      (await db.select().from(accessRequest).where(eq(accessRequest.id, id)))[0]!.state;
    await until("the worker to expire the request", async () => (await stateOf()) === "Expired");
    const log = await db.execute(sql`
      select action, actor from audit_log where subject = ${`request/${id}`} order by id desc limit 1`);
    expect([...log]).toEqual([{ action: "access.expired", actor: "system" }]);
  });

  test("whose incident is locked does not delay the expiry of others", async () => {
    const { server, incident, ids } = world;
    const role = await makeRole({ approval: "admin" });
    const all = inArray(accessRequest.id, [await ask(role, { incident }), await ask(role)]);
    const states = async () =>
      (await server.db.select().from(accessRequest).where(all).orderBy(accessRequest.id)).map(
        ({ state }) => state,
      );
    await server.db.transaction(async (tx) => {
      await tx.execute(sql`select from incident where id = ${ids.incidentId} for no key update`);
      await server.db
        .update(accessRequest)
        .set({ expiresAt: sql`now()` })
        .where(all);
      await until("the second to expire", async () => (await states())[1] === "Expired");
      expect(await states()).toEqual(["Pending", "Expired"]);
    });
    await until("the others to expire", async () => (await states()).every((state) => state === "Expired"));
  });

  test("cannot be used after its approved duration", async () => {
    const role = await makeRole({ approval: "admin" });
    const id = await ask(role);
    expect((await decide(world.admin, id, "approve")).http).toBe(200);
    await world.server.db
      .update(accessRequest)
      .set({ expiresAt: sql`now() - interval '1 second'` })
      .where(eq(accessRequest.id, id));
    const { http, body } = await world.issue(world.alice, role, { request_id: id });
    expect([http, body.detail]).toEqual([409, expect.stringContaining("expired")]);
  });

  test("cannot be approved or used after the database's clock was set back to before it", async () => {
    const { db } = world.server;
    const role = await makeRole({ approval: "admin" });
    const [pending, approved] = [await ask(role), await ask(role)];
    expect((await decide(world.admin, approved, "approve")).http).toBe(200);
    const later = sql`now() + interval '3 hours'`;
    const request = (id: number) => eq(accessRequest.id, id);
    await db
      .update(accessRequest)
      .set({ createdAt: later, expiresAt: sql`now() + interval '7 hours'` })
      .where(request(pending));
    await db
      .update(accessRequest)
      .set({ decidedAt: later, expiresAt: sql`now() + interval '4 hours'` })
      .where(request(approved));
    for (const { http, body } of [
      await decide(world.admin, pending, "approve"),
      await world.issue(world.alice, role, { request_id: approved }),
    ])
      expect([http, body.detail]).toEqual([409, expect.stringContaining("clock was set back")]);
  });

  test("for an incident that is being deleted is refused, and so is a lease", async () => {
    const { admin, alice, ids, server } = world;
    const { body } = await admin.call("POST", "/incidents/", {
      title: "short",
      description: "short",
      incident_type_id: ids.incidentTypeId,
      incident_priority_id: ids.incidentPriorityId,
    });
    const [role, wanted] = [await makeRole(), { incident: body.name, reason: "x" }];
    const answers = await inTheWay(
      server.db,
      (tx) => tx.execute(sql`delete from incident where id = ${body.id}`),
      () => alice.call("POST", "/access/requests/", { role, ...wanted }),
      () => world.issue(world.bob, role, { incident: body.name }),
    );
    for (const answer of answers)
      expect(answer).toMatchObject({ value: { http: 400, body: { field: "incident" } } });
  });

  test("for break-glass access needs a role that allows it, and an incident", async () => {
    const wanted = { reason: "the site is down", break_glass: true };
    const without = await makeRole({ approval: "admin" });
    const refused = await world.bob.call("POST", "/access/requests/", {
      ...wanted,
      role: without,
      incident: world.incident,
    });
    expect([refused.http, refused.body.code]).toEqual([403, "forbidden"]);
    const role = await makeRole({ approval: "admin", break_glass: true });
    const { http, body } = await world.bob.call("POST", "/access/requests/", { ...wanted, role });
    expect([http, body.field]).toEqual([400, "incident"]);
  });

  test("for break-glass access is refused while another one is in force, or after it was denied or cancelled", async () => {
    const { db } = world.server;
    const options = { approval: "admin", incident_required: true, break_glass: true };
    const [role, other, givenUp] = [
      await makeRole(options),
      await makeRole(options),
      await makeRole(options),
    ];
    const breakGlass = async (slug: string, more = {}) => {
      const wanted = { role: slug, reason: "x", incident: world.incident, break_glass: true, ...more };
      const { http, body } = await world.alice.call("POST", "/access/requests/", wanted);
      return { http, id: body.id as number, detail: body.detail as string };
    };
    const [second, third, first] = (
      await Promise.all(["a", "b", "c"].map((reason) => breakGlass(role, { reason })))
    ).sort((a, b) => b.http - a.http);
    expect([first!.http, second!.http, third!.http]).toEqual([201, 409, 409]);
    expect(third!.detail).toContain(`by request ${first!.id}, until 2`);
    expect((await breakGlass(role, { break_glass: false })).http).toBe(201);
    expect((await breakGlass(other)).http).toBe(201);

    expect((await decide(world.admin, first!.id, "deny")).http).toBe(200);
    const denied = await breakGlass(role);
    expect([denied.http, denied.detail]).toEqual([409, expect.stringContaining("root@example.com denied")]);
    await db.execute(sql`update access_request set expires_at = now() where id = ${first!.id}`);
    const again = await breakGlass(role);
    expect(again.http).toBe(201);

    // Otherwise, a user who cancels it each time could send any number of messages.
    const { id } = await breakGlass(givenUp);
    expect((await decide(world.alice, id, "cancel")).http).toBe(200);
    const cancelled = await breakGlass(givenUp);
    expect([cancelled.http, cancelled.detail]).toEqual([
      409,
      expect.stringContaining("alice@example.com cancelled"),
    ]);

    // Access that ended early does not count: here, its incident was deleted.
    await db.execute(sql`update access_request set incident_id = null where id = ${again.id}`);
    expect((await breakGlass(role)).http).toBe(201);
  });

  test("for break-glass access cannot be reviewed by its user, even an admin", async () => {
    const role = await makeRole({ approval: "admin", break_glass: true, groups: ["*"] });
    const wanted = { role, reason: "the site is down", incident: world.incident, break_glass: true };
    const { body } = await world.admin.call("POST", "/access/requests/", wanted);
    expect((await decide(world.admin, body.id, "review")).http).toBe(403);
  });

  test("of others is listed without reading the roles for each request", async () => {
    const { db } = world.server;
    const mark = "many@example.com";
    await db.execute(sql`
      with roles as (
        insert into access_role (slug, description, plugin_slug, settings, groups, default_duration, max_duration, approval,
          incident_required, break_glass, created_at, updated_at)
        select 'many-' || n, '', 'fake', '{}', '{}', 60, 60, 'commander', false, false, now(), now()
        from generate_series(1, 50) as n returning id)
      insert into access_request (role_id, user_name, incident_id, reason, duration, created_at, expires_at)
      select id, ${mark}, ${world.ids.incidentId}, '', 60, now(), now() from roles, generate_series(1, 60)`);
    const listed = async (who: AccessWorld["bob"]) => (await who.call("GET", "/access/requests/")).body.items;
    expect((await listed(world.alice)).map((one: { user: string }) => one.user)).toContain(mark);
    const asked = noteAsked(db);
    expect((await listed(world.bob)).map((one: { user: string }) => one.user)).not.toContain(mark);
    const [reading] = asked.filter(({ text }) => text.includes('from "access_request"'));
    expect(await rowsRead(db, reading!)).toBeLessThan(10_000);
    await db.delete(accessRequest).where(eq(accessRequest.userName, mark));
    await db.execute(sql`delete from access_role where slug like 'many-%'`);
  });

  test("is refused while the user has 20 pending requests", async () => {
    const dave = await personOf(world.server, "dave@example.com", ["oncall"]);
    const role = await makeRole({ approval: "admin" });
    const statuses: number[] = [];
    for (let count = 0; count < 21; count += 1)
      statuses.push((await dave.call("POST", "/access/requests/", { role, reason: "again" })).http);
    expect(statuses).toEqual([...Array(20).fill(201), 409]);
  });

  test("is refused beyond that, also if many are made at once", async () => {
    const erin = await personOf(world.server, "erin@example.com", ["oncall"]);
    const role = await makeRole({ approval: "admin" });
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => erin.call("POST", "/access/requests/", { role, reason: "again" })),
    );
    const statuses = answers.map(({ http }) => http).sort();
    expect(statuses).toEqual([...Array(20).fill(201), ...Array(10).fill(409)]);
  });
});
