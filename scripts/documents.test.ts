import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { Glob } from "bun";
import { withTable } from "./configuration_table.ts";

const root = join(import.meta.dir, "..");

test("docs/configuration.md has the table that the code makes", async () => {
  const page = await Bun.file(join(root, "docs/configuration.md")).text();
  expect(withTable(page), "run: bun scripts/configuration_table.ts --write").toBe(page);
});

test("every link of a page leads somewhere", async () => {
  const pages = ["*.md", "docs/**/*.md"].flatMap((pattern) => [...new Glob(pattern).scanSync(root)]);
  expect(pages.length).toBeGreaterThan(4);
  for (const page of pages) {
    const text = await Bun.file(join(root, page)).text();
    for (const [, target = ""] of text.matchAll(/\]\(([^)#]+)[^)]*\)/g)) {
      if (/^https?:/.test(target)) continue;
      const file = join(root, dirname(page), target);
      expect(existsSync(file), `${page} links ${target}`).toBe(true);
    }
  }
});
