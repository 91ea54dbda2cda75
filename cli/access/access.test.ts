import { describe, expect, spyOn, test } from "bun:test";
import * as fs from "node:fs";
import { join } from "node:path";
import { Forbidden, Unavailable } from "../../platform/errors.ts";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { configHome, NOW, testIo } from "../../tests/support/cli/io.ts";
import { privateDirectory } from "../client/private_file.ts";
import get from "../commands/access/get.ts";
import type { Fetch } from "../io.ts";
import { run } from "../run.ts";
import { AccessClient, type AccessRequest, type Wanted } from "./access.ts";

const rule = { approval: "group", approver_groups: ["security", "dba"], approvals_needed: 2 };

/** Waits for the decision on a request that expires in an hour, with these answers. The last one repeats. */
async function decided(...answers: Response[]) {
  const asked = {
    id: 3,
    state: "Pending",
    expires_at: new Date(NOW.getTime() + 3_600_000).toISOString(),
    ...rule,
    approved_by: [] as string[],
  } as AccessRequest;
  let calls = 0;
  const fetch: Fetch = async () => answers[Math.min(calls++, answers.length - 1)]!.clone();
  const token = fakeToken({ now: NOW.getTime(), seconds: 86_400 });
  const io = testIo({ env: { SVC_SERVER: "http://127.0.0.1:1", SVC_TOKEN: token }, fetch });
  const state = await AccessClient.within(io, (client) => client.decided(asked)).then(
    ({ state }) => state,
    (error: unknown) => error,
  );
  return { state, slept: io.slept, calls, stderr: io.out.stderr };
}
const failing = (status: number, headers = {}) =>
  Response.json({ detail: "No database" }, { status, headers });

test("the wait for an approval continues while the server fails or limits requests", async () => {
  const limited = failing(429, { "retry-after": "30" });
  const approved = Response.json({ id: 3, state: "Approved" });
  const { state, slept } = await decided(failing(503), failing(500), limited, approved);
  expect([state, slept]).toEqual(["Approved", [2000, 2000, 2000, 30_000]]);
});

test("the wait for several approvals says who may give them, and how many there are", async () => {
  const pending = (...approved_by: string[]) =>
    Response.json({ id: 3, state: "Pending", ...rule, approved_by });
  const approved = Response.json({ id: 3, state: "Approved" });
  const { stderr } = await decided(pending(), pending("ada"), pending("ada"), approved);
  const line = (count: number) =>
    `Waiting for approval by group security or dba: ${count} of 2 approvals (svc access approve 3), `;
  expect(stderr).toMatch(
    new RegExp(`^${[0, 1].map((n) => `${RegExp.escape(line(n))}[\\d:]+ left\\.\n`).join("")}$`),
  );
});

test("the wait for an approval ends when the server refuses, or fails until the request has expired", async () => {
  const refused = await decided(failing(403));
  expect([refused.state, refused.calls]).toEqual([expect.any(Forbidden), 1]);
  const gone = await decided(failing(503));
  expect([gone.state, gone.calls]).toEqual([expect.any(Unavailable), 1800]);
});

test("- reads the reason and the note of a decision from stdin, and a list goes on after 1,000 items", async () => {
  const sent: unknown[] = [];
  const fetch: Fetch = async (url, { method, body }) => {
    if (method === "POST") sent.push(JSON.parse(String(body)));
    if (method === "POST") return Response.json({ id: 3, role: "till", user: "ada", approved_by: [] });
    const first = Number(new URL(url).searchParams.get("cursor") ?? 0);
    const next = first + Number(new URL(url).searchParams.get("limit"));
    const items = Array.from({ length: Math.min(next, 2500) - first }, (_, at) => first + at);
    return Response.json({ items, next_cursor: next < 2500 ? String(next) : null });
  };
  const token = fakeToken({ now: NOW.getTime() });
  const io = testIo({
    env: { SVC_SERVER: "http://127.0.0.1:1", SVC_TOKEN: token },
    fetch,
    readStdin: async () => Buffer.from("Find the stuck order\n"),
  });
  await AccessClient.within(io, async (client) => {
    await client.ask("till", { reason: "-" });
    expect(await client.list<number>("/tasks/")).toHaveLength(2500);
  });
  expect(await run(["access", "deny", "3", "-n", "-"], io)).toBe(0);
  expect(sent).toEqual([{ role: "till", reason: "Find the stuck order" }, { note: "Find the stuck order" }]);
});

test("an approved request whose incident is closed does not hide another one", async () => {
  const asked: unknown[] = [];
  const one = { role: "hosts", user: "ada", expires_at: new Date(NOW.getTime() + 3_600_000).toISOString() };
  const fetch: Fetch = async (url, { method, body }) => {
    if (method === "POST") {
      const { request_id } = JSON.parse(String(body));
      asked.push(request_id);
      if (request_id === 2) return Response.json({ detail: "INC-7 is closed" }, { status: 409 });
      return Response.json({ id: 9 }, { status: 201 });
    }
    if (!url.includes("/requests/")) return Response.json({ slug: "hosts", approval: "approvers" });
    return Response.json({ items: [2, 1].map((id) => ({ ...one, id })) });
  };
  const token = fakeToken({ now: NOW.getTime(), user: "ada" });
  const io = testIo({ env: { SVC_SERVER: "http://127.0.0.1:1", SVC_TOKEN: token }, fetch });
  const { id } = await AccessClient.within(io, (client) => client.obtain("hosts", {}));
  expect([id, asked]).toEqual([9, [2, 1]]);
});

test.each([
  [
    "an approved request",
    { approval: "admin", break_glass: false },
    "using your earlier approved request 3, until ",
  ],
  [
    "a break-glass request",
    { approval: "admin", break_glass: true },
    "using your earlier break-glass request 3, until ",
  ],
  ["a role without approval", { approval: "none" }, "hosts needs no approval, so --break-glass is not used"],
])("--break-glass reports that it uses %s instead", async (_, { approval, ...more }, said) => {
  const expires_at = new Date(NOW.getTime() + 3_600_000).toISOString();
  const earlier = { id: 3, role: "hosts", user: "ada", expires_at, ...more };
  const fetch: Fetch = async (url, { method }) => {
    if (method === "POST") return Response.json({ id: 9 }, { status: 201 });
    return Response.json(url.includes("/requests/") ? { items: [earlier] } : { slug: "hosts", approval });
  };
  const token = fakeToken({ now: NOW.getTime(), user: "ada" });
  const io = testIo({ env: { SVC_SERVER: "http://127.0.0.1:1", SVC_TOKEN: token }, fetch });
  const obtain = (wanted: Wanted) => AccessClient.within(io, (client) => client.obtain("hosts", wanted));
  await obtain({ reason: "x" });
  expect(io.out.stderr).toBe("");
  await obtain({ reason: "x", breakGlass: true });
  expect(io.out.stderr).toStartWith(`svc: ${said}`);
});

test("an incident is named as for svc incident", async () => {
  const fetch: Fetch = async (url) =>
    url.endsWith("/incidents/7")
      ? Response.json({ id: 7, name: "INC-8" })
      : Response.json({ detail: "Not found" }, { status: 404 });
  const io = testIo({
    env: { SVC_SERVER: "http://127.0.0.1:1", SVC_TOKEN: fakeToken({ now: NOW.getTime() }) },
    fetch,
  });
  const named = (typed?: string) =>
    AccessClient.within(io, (client) => client.incidentName(typed)).catch((error: Error) => error.message);
  for (const typed of ["7", "#7", "http://127.0.0.1:1/incidents/7"]) expect(await named(typed)).toBe("INC-8");
  for (const typed of ["inc-7", "INC-7", "http://127.0.0.1:1/incidents/inc-7"])
    expect(await named(typed)).toBe("INC-7");
  expect(await named()).toBeUndefined();
  expect(await named("9")).toBe("there is no incident 9 that you may see");
  expect(await named("INC-07")).toContain('"INC-07" is not an incident');
});

describe("svc access get revokes the access", () => {
  const base = "http://127.0.0.1:1";

  /** Gets a credential of this kind. @returns the error, if any, and what was revoked */
  async function failing(format: string, { kind, home = configHome() }: { kind: string; home?: string }) {
    const revoked: string[] = [];
    const fetch: Fetch = async (url, { method }) => {
      const public_key = ["ssh", "x509"].includes(kind) ? kind : null;
      if (method === "GET") return Response.json({ slug: "hosts", approval: "none", public_key });
      if (method === "DELETE") {
        revoked.push(new URL(url).pathname);
        return new Response(null, { status: 204 });
      }
      const times = { created_at: NOW.toISOString(), expires_at: "2026-01-02T04:04:05Z" };
      const credential = { kind, fields: { certificate: "a certificate" } };
      return Response.json({ id: 7, role: "hosts", ...times, credential }, { status: 201 });
    };
    const token = fakeToken({ now: NOW.getTime() });
    const io = testIo({ env: { SVC_SERVER: base, SVC_TOKEN: token, XDG_CONFIG_HOME: home }, fetch });
    const error = await get.run({ role: "hosts", format } as never, io, []).catch((error: Error) => error);
    return { message: (error as Error | undefined)?.message, revoked, stdout: io.out.stdout };
  }

  const filesIn = (folder: string) =>
    Object.fromEntries(
      fs.readdirSync(folder).map((name) => [name, fs.readFileSync(join(folder, name), "utf8")]),
    );

  test.each([
    ["ssh", "hosts-cert.pub"],
    ["x509", "hosts/certificate.pem"],
  ] as const)("if the certificate for %s cannot be written", async (kind, file) => {
    const home = configHome();
    fs.mkdirSync(join(privateDirectory({ XDG_CONFIG_HOME: home }, base, kind), file), { recursive: true });
    expect(await failing(kind, { kind, home })).toEqual({
      message: expect.stringMatching(/cannot be written \(EISDIR\)$/),
      revoked: ["/access/leases/7"],
      stdout: "",
    });
  });

  test("if the certificate for x509 cannot be replaced, and keeps the one for the same key", async () => {
    const home = configHome();
    const folder = join(privateDirectory({ XDG_CONFIG_HOME: home }, base, "x509"), "hosts");
    expect((await failing("x509", { kind: "x509", home })).revoked).toEqual([]);
    const before = filesIn(folder);
    expect(Object.keys(before).sort()).toEqual(["certificate.pem", "key.pem"]);
    const { renameSync } = fs;
    using _ = spyOn(fs, "renameSync").mockImplementation((from, to) => {
      if (String(to).endsWith("certificate.pem")) throw Object.assign(new Error("full"), { code: "ENOSPC" });
      renameSync(from, to);
    });
    expect(await failing("x509", { kind: "x509", home })).toMatchObject({
      message: expect.stringContaining("cannot be written (ENOSPC)"),
      revoked: ["/access/leases/7"],
    });
    expect(filesIn(folder)).toEqual(before);
  });

  test.each(["env", "token", "aws", "kube"])("if --format %s does not support its kind", async (format) => {
    const { message, revoked } = await failing(format, { kind: "database" });
    expect(message).toContain("database");
    expect(revoked).toEqual(["/access/leases/7"]);
  });
});
