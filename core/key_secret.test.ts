import { beforeEach, expect, test } from "bun:test";
import { accessRole, signingKey } from "../drizzle/schema/index.ts";
import { systemClock } from "../platform/clock.ts";
import { createLog } from "../platform/log.ts";
import { useDatabase } from "../tests/support/database/database.ts";
import { keepSecrets } from "./access/role_plugin.ts";
import { Keys } from "./auth/token/keys.ts";
import { readConfig } from "./config.ts";
import { wrongKeySecret } from "./key_secret.ts";

const database = useDatabase(2);
const [ours, other] = [
  "a-secret-of-more-than-thirty-two-characters",
  "another-of-more-than-thirty-two-characters",
];

beforeEach(async () => {
  await database.db.delete(signingKey);
  await database.db.delete(accessRole);
});

const contextWith = (SVC_KEY_SECRET?: string) => ({
  db: database.db,
  config: readConfig(SVC_KEY_SECRET === undefined ? {} : { SVC_KEY_SECRET }),
});
const wrong = async (secret?: string) => (await wrongKeySecret(contextWith(secret)))?.detail;

const insertSigningKey = (secret: string) =>
  new Keys({ ...contextWith(secret), clock: systemClock, log: createLog("silent") }).signing();

async function insertRole(slug: string, secret: string): Promise<void> {
  const at = systemClock.now();
  const [{ id } = { id: 0 }] = await database.db
    .insert(accessRole)
    .values({
      slug,
      pluginSlug: "postgresql-role",
      description: "",
      settings: {},
      groups: [],
      defaultDuration: 60,
      maxDuration: 60,
      incidentRequired: false,
      breakGlass: false,
      approval: "none",
      createdAt: at,
      updatedAt: at,
    })
    .returning({ id: accessRole.id });
  await database.db.transaction((tx) => keepSecrets(tx, contextWith(secret), id, { password: "p" }));
}

test("an empty database takes any key secret, or none", async () => {
  expect([await wrong(), await wrong(ours)]).toEqual([undefined, undefined]);
});

test("a key secret must decrypt the signing keys; a process without one needs no signing keys", async () => {
  const { kid } = await insertSigningKey(ours);
  expect([await wrong(), await wrong(ours)]).toEqual([undefined, undefined]);
  expect(await wrong(other)).toStartWith(`SVC_KEY_SECRET cannot decrypt signing key ${kid}: set the secret`);
});

test("a key secret must decrypt the secrets of access roles; without one, they cannot be used", async () => {
  await insertRole("orders-db", ours);
  expect(await wrong(ours)).toBeUndefined();
  const said = "SVC_KEY_SECRET cannot decrypt the secrets of access role orders-db: set the secret";
  expect(await wrong(other)).toStartWith(said);
  expect(await wrong()).toStartWith(said);
});

test("a key secret that decrypts some of them is accepted: the others can then be entered again", async () => {
  await insertRole("orders-db", other);
  await insertRole("stock-db", ours);
  expect([await wrong(ours), await wrong(other)]).toEqual([undefined, undefined]);
});
