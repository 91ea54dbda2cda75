import { describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportPKCS8, generateKeyPair } from "jose";
import { signingKey } from "../../../drizzle/schema/index.ts";
import { signInToken, startTestServer, type TestServer } from "../../../tests/support/http/server.ts";
import { Keys } from "./keys.ts";
import { planRotation } from "./rotation.ts";

const day = 24 * 3600;
const whoami = async (server: TestServer, token: string) =>
  (await server.fetch("/whoami", { headers: { authorization: `Bearer ${token}` } })).status;
const kids = async (server: TestServer) => (await server.keys.jwks()).keys.map(({ kid }) => kid as string);

describe("rotation", () => {
  test("the next key is published a day before it signs, and the old key's last token stays valid", async () => {
    await using server = await startTestServer({ keyRotation: 10 });
    const [first] = await kids(server);
    server.clock.advance(9 * day - 1);
    expect(await kids(server)).toEqual([first!]);
    // Each process checks once a minute.
    server.clock.advance(61);
    expect(await kids(server)).toHaveLength(2);
    expect((await server.keys.signing()).kid).toBe(first!);
    server.clock.advance(day - 120);
    const last = await signInToken(server);
    server.clock.advance(120);
    expect((await server.keys.signing()).kid).not.toBe(first!);
    expect(await whoami(server, last)).toBe(200);
    server.clock.advance(3600 - 121);
    expect(await whoami(server, last)).toBe(200);
    server.clock.advance(3 * 3600);
    expect(await kids(server)).not.toContain(first!);
  });

  test("a process with an old key set accepts a token signed by the new key", async () => {
    await using one = await startTestServer({ keyRotation: 2 });
    await using two = await one.another();
    await two.keys.jwks();
    one.clock.advance(2 * day);
    await one.keys.signing();
    one.clock.advance(2 * day);
    expect(await whoami(two, await signInToken(one))).toBe(200);
  });

  test("a process looks up an unknown key again, but at most every 5 s", async () => {
    await using one = await startTestServer();
    await using other = await one.another({ tokenAlgorithm: "Ed25519" });
    await one.keys.jwks();
    const token = await signInToken(other);
    expect(await whoami(one, token)).toBe(401);
    one.clock.advance(4.999);
    expect(await whoami(one, token)).toBe(401);
    one.clock.advance(0.001);
    expect(await whoami(one, token)).toBe(200);
  });

  test("a key keeps its end time when the next one is created", async () => {
    await using server = await startTestServer({ keyRotation: 2 });
    const [first] = await kids(server);
    const endOf = async (kid: string) =>
      (await server.db.select().from(signingKey)).find((row) => row.kid === kid)!.expiresAt;
    server.clock.advance(day);
    expect(await kids(server)).toHaveLength(2);
    const end = await endOf(first!);
    expect(end).not.toBeNull();
    server.clock.advance(2 * day);
    expect(await kids(server)).not.toContain(first!);
    expect(await server.db.$count(signingKey)).toBe(3);
    expect(await endOf(first!)).toEqual(end);
  });

  test("ten processes that start together create one key", async () => {
    await using server = await startTestServer();
    await server.db.delete(signingKey);
    const context = { db: server.db, clock: server.clock, config: server.config, log: {} as never };
    const all = await Promise.all(Array.from({ length: 10 }, () => new Keys(context).signing()));
    expect(new Set(all.map(({ kid }) => kid)).size).toBe(1);
    expect(await server.db.$count(signingKey)).toBe(1);
  });

  test("another algorithm takes over at once, and the old keys still verify", async () => {
    await using before = await startTestServer();
    const token = await signInToken(before);
    await using after = await before.another({ tokenAlgorithm: "Ed25519" });
    expect((await after.keys.signing()).algorithm).toBe("Ed25519");
    expect(await whoami(after, token)).toBe(200);
    expect(await whoami(after, await signInToken(after))).toBe(200);
  });

  test("is planned by the times of the keys", () => {
    const policy = { algorithm: "ES256" as const, rotationDays: 30, tokenLifetime: 3600 };
    const at = (days: number) => new Date(days * day * 1000);
    const key = (kid: string, active: number) => ({
      kid,
      algorithm: "ES256",
      activeAt: at(active),
      expiresAt: null,
    });
    expect(planRotation([], policy, at(0)).create?.activeAt).toEqual(at(0));
    expect(planRotation([key("a", 0)], policy, at(28.9))).toEqual({ signing: "a" });
    expect(planRotation([key("a", 0)], policy, at(29)).create?.activeAt).toEqual(at(30));
    expect(planRotation([key("a", 0), key("b", 30)], policy, at(29.5))).toEqual({ signing: "a" });
    // Another process's clock is ahead: its key is used, not duplicated.
    expect(planRotation([key("a", 0.001)], policy, at(0))).toEqual({ signing: "a" });
    // A key does not sign tokens that would outlive it.
    const ending = { ...key("a", 0), expiresAt: at(1) };
    expect(planRotation([ending], policy, at(0.9))).toEqual({ signing: "a" });
    expect(planRotation([ending], policy, at(0.97)).create?.activeAt).toEqual(at(0.97));
    expect(planRotation([key("a", 0), key("b", 30)], policy, at(30))).toEqual({ signing: "b" });
  });
});

describe("key storage", () => {
  test("in the database, encrypted: the error names SVC_KEY_SECRET if it is the wrong one", async () => {
    await using server = await startTestServer();
    await server.keys.signing();
    const config = { ...server.config, keySecret: "another-secret-of-more-than-thirty-two-characters" };
    const keys = new Keys({ db: server.db, clock: server.clock, config, log: {} as never });
    expect(keys.signing()).rejects.toThrow("SVC_KEY_SECRET");
  });

  test("a ciphertext moved to another key's row does not decrypt", async () => {
    await using server = await startTestServer();
    await server.keys.signing();
    await server.db.update(signingKey).set({ kid: "swapped" });
    const keys = new Keys({ db: server.db, clock: server.clock, config: server.config, log: {} as never });
    expect(keys.signing()).rejects.toThrow("swapped");
  });

  test("in files: the first one signs, all verify, and the database has none", async () => {
    const directory = await mkdtemp(join(tmpdir(), "svc-keys-"));
    const files = await Promise.all(
      (["ES256", "Ed25519"] as const).map(async (algorithm) => {
        const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
        const file = join(directory, `${algorithm}.pem`);
        await writeFile(file, await exportPKCS8(privateKey));
        return file;
      }),
    );
    await using one = await startTestServer({ keySecret: undefined, tokenKeyFiles: files.join(", ") });
    const token = await signInToken(one);
    expect(await whoami(one, token)).toBe(200);
    expect(await kids(one)).toHaveLength(2);
    expect(await one.db.$count(signingKey)).toBe(0);
    await using two = await one.another({ tokenKeyFiles: files.toReversed().join(",") });
    expect((await two.keys.signing()).algorithm).toBe("Ed25519");
    expect(await whoami(two, token)).toBe(200);
    await rm(directory, { recursive: true });
  });

  test("errors name missing and invalid files; a secret or files are required", async () => {
    await using server = await startTestServer();
    const keysOf = (config: object) =>
      new Keys({ ...server, config: { ...server.config, ...config }, log: {} as never });
    expect(keysOf({ tokenKeyFiles: "/nowhere.pem" }).signing()).rejects.toThrow("cannot read /nowhere.pem");
    expect(keysOf({ tokenKeyFiles: import.meta.path }).signing()).rejects.toThrow(
      "not a P-256 or Ed25519 private key",
    );
    expect(() => keysOf({ keySecret: undefined })).toThrow("SVC_KEY_SECRET");
  });
});
