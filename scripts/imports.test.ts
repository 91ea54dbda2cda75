import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/**
 * The allowed imports between layers. A layer that is not listed may be imported only by tests. Types count like values,
 * except in cli/, whose API client uses the types of the server that it never loads.
 */
interface Rule {
  area: string;
  /** Prefixes of paths allowed in `import`. */
  statically: string[];
  /** Prefixes of paths allowed in `import()`. */
  lazily?: string[];
}

/** The modules of platform/ that load fast enough for every command. The timeline of the pages is folded as in the terminal. */
const fast = [
  "bounded_body",
  "build",
  "clock",
  "duration",
  "errors",
  "markdown",
  "nearest",
  "own_command",
  "record",
  "secret",
  "text",
  "variable",
];
const primitives = [
  ...fast.map((name) => `platform/${name}.ts`),
  "core/incident/timeline/fold.ts",
  "core/incident/words.ts",
];

/** The first matching rule decides. */
const rules: Rule[] = [
  { area: "platform/", statically: ["platform/", "package.json"] },
  { area: "drizzle/", statically: ["drizzle/", "platform/"] },
  { area: "core/", statically: ["core/", "drizzle/", "platform/", "package.json"] },
  { area: "plugins/builtin.ts", statically: ["plugins/", "core/plugin.ts"] },
  // These plugins keep records in our tables, so they may use core. The others use only the interface that
  // third parties have.
  ...[
    "aws",
    "channel",
    "document_matcher",
    "mail",
    "mailing_list",
    "markdown",
    "oidc_token",
    "roster",
    "ssh_ca",
    "x509_ca",
  ].map((folder) => ({
    area: `plugins/${folder}/`,
    statically: ["core/", "drizzle/schema/", "platform/"],
  })),
  // For tests, where it stands in for any plugin.
  { area: "plugins/fake/", statically: ["core/"] },
  // It connects to PostgreSQL as svc itself does.
  {
    area: "plugins/postgresql_role/",
    statically: ["core/plugin.ts", "drizzle/connection/", "platform/errors.ts"],
  },
  { area: "plugins/", statically: ["core/plugin.ts", "platform/errors.ts"] },
  {
    area: "server/",
    statically: ["server/", "web/", "core/", "drizzle/", "platform/", "plugins/", "package.json"],
  },
  // The pages call core as the API does, and share its handling of requests.
  {
    area: "web/",
    statically: ["web/", "server/", "core/", "drizzle/schema/", "platform/", "node_modules/idiomorph/"],
  },
  {
    area: "worker/",
    statically: ["worker/", "core/", "drizzle/", "platform/", "plugins/", "package.json"],
  },
  { area: "trial/idp/", statically: ["trial/idp/", "platform/address.ts", "platform/errors.ts"] },
  { area: "trial/", statically: ["trial/", "core/", "drizzle/", "platform/"] },
  // The parts of `svc up`; only cli/commands/up.ts loads them, lazily.
  { area: "cli/up/", statically: ["cli/", "core/", "drizzle/", "platform/", "trial/"] },
  {
    area: "cli/commands/",
    statically: ["cli/", ...primitives, "trial/idp/users.ts", "package.json"],
    lazily: ["server/", "worker/", "drizzle/", "trial/", "core/", "plugins/", "platform/"],
  },
  {
    area: "cli/",
    statically: ["cli/", ...primitives, "package.json"],
    lazily: ["core/", "drizzle/", "platform/"],
  },
];

interface Import {
  from: string;
  to: string;
  lazy: boolean;
  type: boolean;
}

const root = join(import.meta.dir, "..");

/** Describes the rule that an import breaks. */
export function fault({ from, to, lazy, type }: Import): string | undefined {
  const rule = rules.find(({ area }) => from.startsWith(area));
  if (!rule || (type && from.startsWith("cli/"))) return undefined;
  // A plugin may import its own folder.
  const own = from.startsWith("plugins/") ? [from.split("/").slice(0, 2).join("/")] : [];
  const allowed = [...rule.statically, ...own, ...(lazy ? (rule.lazily ?? []) : [])];
  if (allowed.some((prefix) => to.startsWith(prefix))) return undefined;
  return `${from} ${lazy ? "import()s" : "imports"} ${to}`;
}

/** Uses a pattern, because Bun's transpiler omits type imports. */
const importPattern = /\b(?:(import|export)\s+(type\s+)?[^"'`;]*?\bfrom\s*|import\s*(\(\s*)?)"(\.[^"]+)"/g;

function importsOf(path: string): Import[] {
  const text = readFileSync(join(root, path), "utf8");
  return [...text.matchAll(importPattern)].map(([, , type, bracket, to]) => ({
    from: path,
    to: relative(root, join(root, dirname(path), to!)),
    lazy: bracket !== undefined,
    type: type !== undefined,
  }));
}

/**
 * The unit within which circular imports are allowed: a folder of core or drizzle, or of core/incident. A file outside of
 * these folders is a separate unit.
 */
function folderOf(path: string): string {
  const parts = path.split("/");
  return parts.slice(0, path.startsWith("core/incident/") ? 3 : 2).join("/");
}

/** The folders of a circular import, in order, or undefined. */
function circle(imports: readonly Pick<Import, "from" | "to">[]): string[] | undefined {
  const next = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    const [a, b] = [folderOf(from), folderOf(to)];
    if (a !== b) next.set(a, (next.get(a) ?? new Set()).add(b));
  }
  const done = new Set<string>();
  const visit = (folder: string, path: string[]): string[] | undefined => {
    if (path.includes(folder)) return [...path.slice(path.indexOf(folder)), folder];
    if (done.has(folder)) return undefined;
    for (const other of next.get(folder) ?? []) {
      const found = visit(other, [...path, folder]);
      if (found) return found;
    }
    done.add(folder);
    return undefined;
  };
  for (const folder of next.keys()) {
    const found = visit(folder, []);
    if (found) return found;
  }
  return undefined;
}

const layers = "cli,core,drizzle,platform,plugins,server,trial,web,worker";
const files = [...new Bun.Glob(`{${layers}}/**/*.{ts,tsx}`).scanSync(root)].filter(
  (path) => !/\.test\.tsx?$/.test(path),
);
const imports = files.flatMap(importsOf);

test("layers import only layers below them", () => {
  expect(files.length).toBeGreaterThan(500);
  expect(imports.length).toBeGreaterThan(2000);
  expect(imports.map(fault).filter(Boolean)).toEqual([]);
});

test("folders of core and drizzle have no circular imports, including types", () => {
  expect(circle(imports.filter(({ from }) => /^(core|drizzle)\//.test(from)))).toBeUndefined();
});

test("no circle of imports has more than three files", () => {
  const next = Map.groupBy(imports, ({ from }) => from);
  const reachable = new Map(
    files.map((file) => {
      const seen = new Set<string>();
      const rest = [file];
      for (let at = rest.pop(); at !== undefined; at = rest.pop())
        for (const { to } of next.get(at) ?? []) if (!seen.has(to) && seen.add(to)) rest.push(to);
      return [file, seen];
    }),
  );
  const circleOf = (file: string) =>
    [...reachable.get(file)!].filter((other) => reachable.get(other)?.has(file));
  expect(files.map(circleOf).filter((one) => one.length > 3)).toEqual([]);
});

test("every program gets its plugins and its telemetry from core/open.ts", () => {
  const opening = ["core/plugin/open.ts", "platform/telemetry/telemetry.ts"];
  const importers = imports.filter(({ to, type }) => opening.includes(to) && !type).map(({ from }) => from);
  expect([...new Set(importers)]).toEqual(["core/open.ts"]);
});

test("circles of any length are found", () => {
  const hops = ["a", "b", "c"].map((name, at, all) => ({
    from: `core/${name}/x.ts`,
    to: `core/${all[(at + 1) % all.length]}/y.ts`,
  }));
  expect(circle(hops)).toEqual(["core/a", "core/b", "core/c", "core/a"]);
  expect(circle(hops.slice(1))).toBeUndefined();
});

test("the rules detect violations", () => {
  const broken = (from: string, to: string, lazy = false, type = false) =>
    expect([from, to, fault({ from, to, lazy, type })]).not.toContain(undefined);
  const fine = (from: string, to: string, lazy = false, type = false) =>
    expect(fault({ from, to, lazy, type })).toBeUndefined();
  broken("server/app.ts", "worker/runner.ts");
  broken("worker/runner.ts", "server/app.ts");
  broken("worker/runner.ts", "server/app.ts", false, true);
  broken("core/context.ts", "plugins/smtp/main.ts");
  broken("core/context.ts", "server/app.ts", true);
  broken("drizzle/client.ts", "core/context.ts", false, true);
  broken("platform/log.ts", "drizzle/client.ts", false, true);
  broken("trial/idp/main.ts", "server/main.ts");
  broken("plugins/smtp/main.ts", "plugins/slack/main.ts");
  broken("plugins/smtp/main.ts", "core/plugin/call.ts");
  fine("plugins/smtp/main.ts", "plugins/smtp/text.ts");
  fine("plugins/markdown/markdown.ts", "drizzle/schema/index.ts");
  broken("plugins/markdown/markdown.ts", "drizzle/client.ts");
  broken("plugins/markdown/markdown.ts", "plugins/mail/mail.ts");
  fine("plugins/builtin.ts", "plugins/smtp/main.ts");
  broken("cli/commands/server/start.ts", "server/process/start.ts");
  fine("cli/commands/server/start.ts", "server/process/start.ts", true);
  fine("cli/client/api.ts", "server/app.ts", false, true);
  broken("cli/login/login.ts", "server/app.ts", true);
  broken("cli/main.ts", "tests/support/clock.ts");
});
