import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asc, sql } from "drizzle-orm";
import type { ApplicationItem } from "../../core/plugin.ts";
import { application } from "../../drizzle/schema/index.ts";
import { fakeApplication } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { startTaskTest, type TaskTest } from "../../tests/support/domain/scheduled_task.ts";
import { applicationSync } from "./application-sync.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-sync-"));
let its: TaskTest;
beforeAll(async () => {
  its = await startTaskTest();
});
afterAll(async () => {
  rmSync(directory, { recursive: true });
  await its[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await its.db.execute(sql`truncate application, term, definition cascade`);
});

const sync = (list: () => ApplicationItem[]) =>
  its.run(applicationSync, pluginsOf(fakeApplication({ list }, { slug: "catalog" })));
const applications = async () =>
  (await its.db.select().from(application).orderBy(asc(application.id))).map(
    ({ name, description, uri, source, version, deletedAt }) =>
      `${source ?? "ours"}: ${name} "${description}" ${uri ?? "-"}, version ${version}${deletedAt ? ", gone" : ""}`,
  );
const file = (name: string, text: string) => {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
};

test("follows applications that appear, change, vanish and return; our own with the same name stays", async () => {
  const stamps = { createdAt: its.clock.now(), updatedAt: its.clock.now() };
  await its.db.insert(application).values({ name: "Payments", ...stamps });
  const pay = { externalId: "pay", name: "Payments", description: "Cards", uri: "https://pay.example/" };
  const ledger = { externalId: "ledger", name: "Ledger" };
  expect((await sync(() => [pay, ledger])).result).toEqual({ done: 2, skipped: 0, failed: 0 });
  expect((await sync(() => [pay, ledger])).result).toEqual({ done: 0, skipped: 2, failed: 0 });
  await sync(() => [{ externalId: "pay", name: "Payments" }]);
  expect(await applications()).toEqual([
    'ours: Payments "" -, version 1',
    'catalog: Payments "" -, version 2',
    'catalog: Ledger "" -, version 2, gone',
  ]);
  await sync(() => [{ externalId: "pay", name: "Payments" }, ledger]);
  expect((await applications())[2]).toBe('catalog: Ledger "" -, version 3');
});

test("records a link that contains a password as the item's fault", async () => {
  const { result, faults } = await sync(() => [
    { externalId: "1", name: "a", uri: "https://user:hunter2@pay.example/" },
    { externalId: "2", name: "b" },
  ]);
  expect(result).toEqual({ done: 1, skipped: 0, failed: 1 });
  expect(faults).toEqual([
    { item: "catalog 1", reason: "The field uri must be an address such as https://example.com/page" },
  ]);
});

test("syncs from a Backstage catalog and a CSV file as they change between runs", async () => {
  const entity = (name: string, more = "") =>
    `---\napiVersion: backstage.io/v1alpha1\nkind: Component\nmetadata: { name: ${name}${more} }\n`;
  const catalog = file("catalog-info.yaml", entity("payments") + entity("ledger"));
  const csv = file("applications.csv", "id,name,uri\nshop,Shop,https://shop.example\n");
  const plugins = await its.choose({
    SVC_PLUGIN_APPLICATION: "backstage-catalog,application-source",
    SVC_PLUGIN_BACKSTAGE_CATALOG_LOCATIONS: catalog,
    SVC_PLUGIN_APPLICATION_SOURCE_LOCATIONS: csv,
  });
  const run = () => its.run(applicationSync, plugins);
  expect((await run()).result).toEqual({ done: 3, skipped: 0, failed: 0 });
  expect((await run()).result).toEqual({ done: 0, skipped: 3, failed: 0 });
  file("catalog-info.yaml", entity("payments", ", title: Payments"));
  file("applications.csv", "");
  const { result, faults } = await run();
  expect(result).toEqual({ done: 2, skipped: 0, failed: 1 });
  expect(faults).toMatchObject([{ item: "application-source", reason: expect.stringContaining("is empty") }]);
  expect((await applications()).sort()).toEqual([
    'application-source: Shop "" https://shop.example/, version 1',
    'backstage-catalog: Payments "" -, version 2',
    'backstage-catalog: ledger "" -, version 2, gone',
  ]);
});
