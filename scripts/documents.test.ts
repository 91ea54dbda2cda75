import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { Glob } from "bun";
import { anchorsOf } from "../tests/support/anchors.ts";
import { withTable } from "./configuration_table.ts";

const root = join(import.meta.dir, "..");

test("docs/configuration.md has the generated table", async () => {
  const page = await Bun.file(join(root, "docs/configuration.md")).text();
  expect(withTable(page), "run: bun scripts/configuration_table.ts --write").toBe(page);
});

test("every link of a page has a target", async () => {
  const pages = ["*.md", "docs/**/*.md"].flatMap((pattern) => [...new Glob(pattern).scanSync(root)]);
  expect(pages.length).toBeGreaterThan(4);
  for (const page of pages) {
    const text = await Bun.file(join(root, page)).text();
    for (const [, target = "", anchor] of text.matchAll(/\]\(([^)#]*)(?:#([^)]+))?\)/g)) {
      if (/^https?:/.test(target)) continue;
      const file = target === "" ? join(root, page) : join(root, dirname(page), target);
      expect(existsSync(file), `${page} links ${target}`).toBe(true);
      if (anchor === undefined || !file.endsWith(".md")) continue;
      expect(anchorsOf(await Bun.file(file).text()), `${page} links ${target}#${anchor}`).toContain(anchor);
    }
  }
});

test("docs/architecture.md counts the files of each code path, and all exist", async () => {
  const page = await Bun.file(join(root, "docs/architecture.md")).text();
  const counts = page.split(/^##+ /m).flatMap((section) => {
    const [, count] = /\((\d+) files\)/.exec(section) ?? [];
    if (count === undefined) return [];
    // A name without a folder is in that of the nearest file before it.
    const files: string[] = [];
    for (const [, name = ""] of section.matchAll(/`([\w./-]+\.tsx?)`/g)) {
      const folders = name.includes("/") ? [""] : files.map((file) => dirname(file)).reverse();
      const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(join(root, path)));
      files.push(found ?? `missing: ${name}`);
    }
    expect(files.filter((file) => file.startsWith("missing"))).toEqual([]);
    return [[Number(count), new Set(files).size]];
  });
  expect(counts.length).toBe(5);
  expect(counts.map(([, found]) => found)).toEqual(counts.map(([said]) => said));
});
