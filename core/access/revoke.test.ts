import { describe, expect, test } from "bun:test";
import { and, eq, sql } from "drizzle-orm";
import { accessLease, auditLog } from "../../drizzle/schema/index.ts";
import { inTheWay } from "../../tests/support/database/blocked.ts";
import { type AccessWorld, useFakeCredentials } from "../../tests/support/domain/access_world.ts";
import type { Person } from "../../tests/support/http/people.ts";
import { until } from "../../tests/support/process/until.ts";
import { countLeases } from "./count.ts";

let world: AccessWorld;
const { credential, makeRole } = useFakeCredentials((given) => {
  world = given;
});
const revokedNames = () => credential.to("revoke").map(({ name }) => name);

describe("a revocation is retried without limit", () => {
  /** Revokes a new lease. The first calls of the plugin use `answers`. */
  const revoked = async (...answers: (() => void)[]) => {
    const { body } = await world.issue(world.alice, await makeRole());
    const calls: { handle?: string }[] = [];
    credential.answer({
      revoke: (call) => {
        if (call.name !== body.name) return;
        calls.push(call);
        answers[calls.length - 1]?.();
      },
    });
    await world.alice.call("DELETE", `/access/leases/${body.id}`);
    return { id: body.id as number, calls };
  };
  const hurry = async (id: number, more: object = {}) => {
    const due = { dueAt: sql`now()`, leaseUntil: null, ...more };
    await world.server.db.update(accessLease).set(due).where(eq(accessLease.id, id));
  };
  const isOver = (id: number) =>
    until("the lease to be Revoked", async () => (await world.leaseRow(id)).state === "Revoked");

  test("when the plugin reports a permanent failure", async () => {
    const { id, calls } = await revoked(() => {
      throw Object.assign(new Error("no such host"), { detail: "no such host", permanent: true });
    });
    await until("the failure", async () => (await world.leaseRow(id)).error);
    expect(await world.leaseRow(id)).toMatchObject({ state: "Revoking", dueAt: expect.any(Date) });
    await hurry(id);
    await isOver(id);
    expect(calls.map(({ handle }) => handle)).toEqual(["handle-1", "handle-1"]);
  });

  test("less and less often when a person has to decide, and at once when the user revokes it again", async () => {
    const answers = Array.from({ length: 2 }, () => () => {
      throw Object.assign(new Error(), { detail: "something uses it", permanent: true });
    });
    const { id, calls } = await revoked(...answers);
    const failed = () => until("the failure", async () => (await world.leaseRow(id)).leaseUntil === null);
    const wait = async () => {
      await failed();
      const { dueAt } = await world.leaseRow(id);
      return (dueAt!.getTime() - Date.now()) / 1000;
    };
    await until("the failure", async () => (await world.leaseRow(id)).error);
    // Stuck at once: see count.ts.
    expect(await world.leaseRow(id)).toMatchObject({ state: "Revoking", attempts: 5 });
    expect((await countLeases({ db: world.server.db })).stuck).toBe(1);
    expect(await wait()).toBeWithin(25, 33);
    await hurry(id, { attempts: 40 });
    await until("the second failure", async () => calls.length === 2);
    expect(await wait()).toBeWithin(3590, 3601);
    await world.alice.call("DELETE", `/access/leases/${id}`);
    await isOver(id);
    expect(calls).toHaveLength(3);
  });

  test("at most a minute apart when the target fails", async () => {
    const fail = () => {
      throw new Error("not yet");
    };
    const { id, calls } = await revoked(fail, fail);
    await until("the failure", async () => (await world.leaseRow(id)).error);
    await hurry(id, { attempts: 40 });
    await until("the second failure", async () => {
      const { leaseUntil } = await world.leaseRow(id);
      return calls.length === 2 && leaseUntil === null;
    });
    const { dueAt } = await world.leaseRow(id);
    expect((dueAt!.getTime() - Date.now()) / 1000).toBeWithin(50, 61);
    await hurry(id);
    await isOver(id);
  });

  test("and what may remain is recorded", async () => {
    const left = ["function public.f() of ddl in shop", "two", "three", "four"];
    const { id } = await revoked();
    await isOver(id);
    const { body } = await world.issue(world.alice, await makeRole());
    credential.answer({ revoke: ({ name }) => (name === body.name ? { left } : ("strange" as never)) });
    await world.alice.call("DELETE", `/access/leases/${body.id}`);
    await isOver(body.id);
    const [entry] = await world.server.db
      .select()
      .from(auditLog)
      .where(and(eq(auditLog.action, "access.revoked"), eq(auditLog.subject, `lease/${body.id}`)));
    expect(entry?.data).toMatchObject({ left });
  });

  test("after more attempts than other work may have", async () => {
    const { id, calls } = await revoked(() => {
      throw new Error("not yet");
    });
    await until("the failure", async () => (await world.leaseRow(id)).error);
    await hurry(id, { attempts: 40 });
    await isOver(id);
    expect(calls).toHaveLength(2);
  });

  test("when its outcome cannot be stored, and does not block other revocations", async () => {
    const { db } = world.server;
    const { body } = await world.issue(world.alice, await makeRole());
    await db.execute(sql`
      create function no_record() returns trigger language plpgsql as
      $$ begin raise exception 'the disk is full'; end $$`);
    await db.execute(
      sql.raw(`create trigger no_record before update on access_lease for each row
        when (new.id = ${body.id} and new.state = 'Revoked') execute function no_record()`),
    );
    await world.alice.call("DELETE", `/access/leases/${body.id}`);
    await until("its revocation", () => revokedNames().includes(body.name));
    const { id } = await revoked();
    await isOver(id);
    await db.execute(sql`drop trigger no_record on access_lease`);
    expect((await world.leaseRow(body.id)).state).toBe("Revoking");
    await hurry(body.id);
    await isOver(body.id);
  });

  test("and a worker that lost its claim does not overwrite the outcome", async () => {
    const { id } = await revoked();
    await isOver(id);
    const { body } = await world.issue(world.alice, await makeRole());
    credential.answer({
      revoke: async ({ name }) => {
        if (name === body.name)
          await world.server.db
            .update(accessLease)
            .set({ state: "Failed", finishedAt: sql`now()`, dueAt: null, leaseUntil: null })
            .where(eq(accessLease.id, body.id));
      },
    });
    await world.alice.call("DELETE", `/access/leases/${body.id}`);
    await until("the end", async () => (await world.leaseRow(body.id)).finishedAt);
    await Bun.sleep(200);
    expect(await world.leaseRow(body.id)).toMatchObject({ state: "Failed" });
  });
});

test("a tampered handle does not change which credential is revoked", async () => {
  const { body: lease } = await world.issue(world.alice, await makeRole());
  await world.server.db
    .update(accessLease)
    .set({ handle: "svc_of_somebody_else" })
    .where(eq(accessLease.id, lease.id));
  await world.alice.call("DELETE", `/access/leases/${lease.id}`);
  await until("the revocation", () => revokedNames().includes(lease.name));
  expect(revokedNames()).not.toContain("svc_of_somebody_else");
});

describe("revoking several leases in one call", () => {
  const revoke = (who: Person, query: string) => who.call("DELETE", `/access/leases/${query}`);
  const lease = async (who: Person, role: string) => (await world.issue(who, role)).body.id as number;
  const states = async (...ids: number[]) =>
    await Promise.all(ids.map(async (id) => (await world.leaseRow(id)).endReason));

  test("needs a filter", async () => {
    const id = await lease(world.alice, await makeRole());
    for (const who of [world.alice, world.admin])
      expect(await revoke(who, "")).toMatchObject({
        http: 400,
        body: { detail: "Specify a user, a role or an incident" },
      });
    expect(await states(id)).toEqual([null]);
  });

  test("ends only the caller's leases, and is forbidden for another user's", async () => {
    const role = await makeRole();
    const [hers, his] = [await lease(world.alice, role), await lease(world.bob, role)];
    expect((await revoke(world.alice, "?user=bob@example.com")).http).toBe(403);
    const { body } = await revoke(world.alice, `?role=${role}`);
    expect(body).toEqual({ ended: 1, accepted_until: null });
    expect(await states(hers, his)).toEqual(["revoked", null]);
  });

  test("ends everyone's leases for an admin, also more than one batch", async () => {
    const role = await makeRole();
    const [hers, his] = [await lease(world.alice, role), await lease(world.bob, role)];
    await world.copyLease(await world.leaseRow(hers), 210);
    expect((await revoke(world.admin, `?role=${role}`)).body).toEqual({ ended: 212, accepted_until: null });
    expect(await states(hers, his)).toEqual(["revoked", "revoked"]);
  });

  test("continues after a full batch in which a worker has ended one of them", async () => {
    const role = await makeRole();
    const first = await lease(world.alice, role);
    const row = await world.leaseRow(first);
    const { db } = world.server;
    await world.copyLease(row, 200);
    const end = { state: "Failed" as const, endReason: "interrupted", finishedAt: sql`now()`, dueAt: null };
    const [answer] = await inTheWay(
      db,
      (tx) => tx.update(accessLease).set(end).where(eq(accessLease.id, first)),
      () => revoke(world.admin, `?role=${role}`),
    );
    expect(answer).toMatchObject({ value: { body: { ended: 200 } } });
    const alive = and(eq(accessLease.roleId, row.roleId), eq(accessLease.state, "Active"));
    expect(await db.$count(accessLease, alive)).toBe(0);
  });

  test("does not change leases that have ended", async () => {
    const role = await makeRole();
    const id = await lease(world.alice, role);
    await revoke(world.alice, `?role=${role}`);
    await until("its end", async () => (await world.leaseRow(id)).finishedAt);
    const row = await world.leaseRow(id);
    expect((await revoke(world.alice, `?role=${role}`)).body.ended).toBe(0);
    expect(await world.leaseRow(id)).toEqual(row);
  });

  test("does not change a lease that a worker ends at the same time", async () => {
    const role = await makeRole();
    const id = await lease(world.alice, role);
    const { db } = world.server;
    const end = { state: "Failed" as const, endReason: "interrupted", finishedAt: sql`now()`, dueAt: null };
    const [answer] = await inTheWay(
      db,
      (tx) => tx.update(accessLease).set(end).where(eq(accessLease.id, id)),
      () => revoke(world.alice, `?role=${role}`),
    );
    expect(answer).toMatchObject({ value: { body: { ended: 0 } } });
    expect(await world.leaseRow(id)).toMatchObject({ state: "Failed", endReason: "interrupted" });
  });
});
