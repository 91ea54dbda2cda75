import { expect, test } from "bun:test";
import { parseEnv } from "node:util";
import { readConfig } from "../core/config.ts";
import { envExample, envExampleFile } from "./env_example.ts";

test(".env.example is the generated one", async () => {
  const file = await Bun.file(envExampleFile).text();
  expect(file, "run: bun scripts/env_example.ts --write").toBe(envExample());
});

test("its values are the defaults", () => {
  const all = envExample().replaceAll(/^#(?=[A-Z_]+=)/gm, "");
  const environment = parseEnv(all);
  expect(Object.keys(environment).length).toBeGreaterThan(30);
  expect(readConfig(environment)).toEqual(readConfig({}));
});
