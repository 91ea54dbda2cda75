import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/**
 * The one-way rule of DESIGN.md: what may import what. An area that is not listed may be imported by tests only.
 * `import type` is free, since it leaves nothing in the program.
 */
interface Rule {
  area: string;
  /** Prefixes of paths that `import` may name. */
  statically: string[];
  /** And `import()`. */
  lazily?: string[];
}

/** The first rule whose area fits decides. */
const rules: Rule[] = [
  { area: "drizzle/", statically: ["drizzle/"] },
  { area: "core/", statically: ["core/", "drizzle/", "package.json"] },
  // The list of those that come with the service.
  { area: "plugins/builtin.ts", statically: ["plugins/", "core/plugin.ts"] },
  // Those that keep their things in our tables: they are a part of the service that can be swapped, and know it as core
  // does. The others must do with what a third party has.
  ...["channel", "document_matcher", "mail", "mailing_list", "markdown", "roster"].map((folder) => ({
    area: `plugins/${folder}/`,
    statically: ["core/", "drizzle/schema/"],
  })),
  { area: "plugins/", statically: ["core/plugin.ts", "core/errors.ts"] },
  { area: "server/", statically: ["server/", "core/", "drizzle/", "plugins/", "package.json"] },
  { area: "worker/", statically: ["worker/", "core/", "drizzle/", "plugins/", "package.json"] },
  { area: "idp/", statically: ["idp/", "core/errors.ts"] },
  // The parts that `svc up` puts together; only cli/commands/up.ts loads them, and lazily.
  { area: "cli/up/", statically: ["cli/", "core/", "drizzle/", "idp/"] },
  {
    area: "cli/commands/",
    statically: ["cli/", "core/errors.ts", "core/clock.ts", "core/nearest.ts", "idp/users.ts"],
    lazily: ["server/", "worker/", "drizzle/", "idp/", "core/", "plugins/"],
  },
  {
    area: "cli/",
    statically: ["cli/", "core/errors.ts", "core/clock.ts", "core/nearest.ts", "package.json"],
    lazily: ["core/"],
  },
];

interface Import {
  from: string;
  to: string;
  lazy: boolean;
}

const root = join(import.meta.dir, "..");

/** The rule that an import breaks, in words. */
export function fault({ from, to, lazy }: Import): string | undefined {
  const rule = rules.find(({ area }) => from.startsWith(area));
  if (!rule) return undefined;
  // A plugin's own folder is its own.
  const own = from.startsWith("plugins/") ? [from.split("/").slice(0, 2).join("/")] : [];
  const allowed = [...rule.statically, ...own, ...(lazy ? (rule.lazily ?? []) : [])];
  if (allowed.some((prefix) => to.startsWith(prefix))) return undefined;
  return `${from} ${lazy ? "import()s" : "imports"} ${to}`;
}

function importsOf(path: string): Import[] {
  const transpiler = new Bun.Transpiler({ loader: "ts" });
  return transpiler
    .scanImports(readFileSync(join(root, path), "utf8").replace(/^#!.*/, ""))
    .filter(({ path: to }) => to.startsWith("."))
    .map(({ path: to, kind }) => ({
      from: path,
      to: relative(root, join(root, dirname(path), to)),
      lazy: kind === "dynamic-import",
    }));
}

const files = [...new Bun.Glob("{cli,core,drizzle,idp,plugins,server,worker}/**/*.ts").scanSync(root)].filter(
  (path) => !path.endsWith(".test.ts") && !path.startsWith("cli/testing/"),
);

test("imports run one way", () => {
  expect(files.length).toBeGreaterThan(50);
  expect(files.flatMap(importsOf).map(fault).filter(Boolean)).toEqual([]);
});

test("the rules see what they are for", () => {
  const no = (from: string, to: string, lazy = false) =>
    expect([from, to, fault({ from, to, lazy })]).not.toContain(undefined);
  const yes = (from: string, to: string, lazy = false) => expect(fault({ from, to, lazy })).toBeUndefined();
  no("server/app.ts", "worker/runner.ts");
  no("worker/runner.ts", "server/app.ts");
  no("core/errors.ts", "plugins/smtp/main.ts");
  no("core/errors.ts", "server/app.ts", true);
  no("drizzle/client.ts", "core/errors.ts");
  no("idp/main.ts", "server/main.ts");
  no("plugins/smtp/main.ts", "plugins/slack/main.ts");
  no("plugins/smtp/main.ts", "core/plugin/call.ts");
  yes("plugins/smtp/main.ts", "plugins/smtp/text.ts");
  yes("plugins/markdown/markdown.ts", "drizzle/schema/index.ts");
  no("plugins/markdown/markdown.ts", "drizzle/client.ts");
  no("plugins/markdown/markdown.ts", "plugins/mail/mail.ts");
  yes("plugins/builtin.ts", "plugins/smtp/main.ts");
  no("cli/commands/server/start.ts", "server/start.ts");
  yes("cli/commands/server/start.ts", "server/start.ts", true);
  no("cli/client/login.ts", "server/app.ts", true);
  no("cli/main.ts", "tests/support/clock.ts");
});
