import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { Glob } from "bun";
import { withTable } from "./configuration_table.ts";

const root = join(import.meta.dir, "..");

test("docs/configuration.md has the generated table", async () => {
  const page = await Bun.file(join(root, "docs/configuration.md")).text();
  expect(withTable(page), "run: bun scripts/configuration_table.ts --write").toBe(page);
});

/** The anchors of a page's headings, as GitHub generates them. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-"),
  );
}

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
