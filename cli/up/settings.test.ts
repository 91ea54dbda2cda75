import { expect, test } from "bun:test";
import { decide } from "./settings.ts";

const options = { host: "127.0.0.1", port: 1, idpPort: 1, databasePort: 0, verbose: false, example: false };

test("SVC_DATABASE_DIRECT_URL requires SVC_DATABASE_URL", async () => {
  const direct = { SVC_DATABASE_DIRECT_URL: "postgres://svc:hunter2@127.0.0.1/svc" };
  const refusal = "SVC_DATABASE_DIRECT_URL requires SVC_DATABASE_URL";
  await expect(decide(options, direct)).rejects.toThrow(refusal);
  const both = { ...direct, SVC_DATABASE_URL: "postgres://svc:hunter2@127.0.0.1:6432/svc" };
  expect(await decide(options, both)).toMatchObject({ startsDatabase: false });
});

test("free ports are chosen once, and kept from the database", async () => {
  const settings = await decide({ ...options, port: 0, idpPort: 0, mtlsPort: 0 }, {});
  const chosen = [settings.port, settings.mtls!.port, settings.idpPort];
  expect(settings.reservedPorts).toEqual(chosen);
  expect(new Set(chosen).size).toBe(3);
});
