import { join } from "node:path";
import type { Environment } from "../config.ts";
import { Unavailable } from "../errors.ts";

export type ToolName = "pg_dump" | "pg_restore";

export interface ToolSearch {
  /** PATH says where to look. */
  env: Environment;
  /** Where packages put the tools of one major version; otherwise those of the common systems. */
  directoriesOf?: (major: number) => readonly string[];
}

/** Where the tools of several versions live side by side. */
function packagedDirectories(major: number): string[] {
  return [
    `/usr/lib/postgresql/${major}/bin`,
    `/usr/pgsql-${major}/bin`,
    `/opt/homebrew/opt/postgresql@${major}/bin`,
    `/usr/local/opt/postgresql@${major}/bin`,
  ];
}

/** A tool of the server's major version, or what there is instead. */
export type FoundTool = { path: string } | { others: string[] };

/**
 * Looks for the tool whose major version is the server's: an older one refuses the server, and what a newer one writes
 * the server's own tools cannot read.
 */
export async function findTool(name: ToolName, major: number, search: ToolSearch): Promise<FoundTool> {
  const path = (search.env.PATH ?? "").split(":").filter((directory) => directory.startsWith("/"));
  const directories = [...new Set([...path, ...(search.directoriesOf ?? packagedDirectories)(major)])];
  const others = new Set<string>();
  for (const directory of directories) {
    const tool = join(directory, name);
    const version = await versionOf(tool, search.env);
    if (version === undefined) continue;
    if (Number.parseInt(version, 10) === major) return { path: tool };
    others.add(version);
  }
  return { others: [...others] };
}

/** The version that a program of PostgreSQL says it has; undefined when it is not there or is something else. */
async function versionOf(tool: string, env: Environment): Promise<string | undefined> {
  if (!(await Bun.file(tool).exists())) return undefined;
  try {
    const child = Bun.spawn([tool, "--version"], {
      // Debian's wrapper of this name chooses by where the server is.
      env: { PATH: env.PATH, LC_ALL: "C", PGHOST: "localhost" },
      stdio: ["ignore", "pipe", "ignore"],
    });
    const text = await new Response(child.stdout).text();
    return /^pg_\w+ \(PostgreSQL\) (\d+[\w.]*)/.exec(text)?.[1];
  } catch {
    return undefined;
  }
}

/** What to type, for a tool that is there only in another version or not at all. */
export function missingTool(name: ToolName, major: number, others: readonly string[]): Unavailable {
  const here = others.length > 0 ? `${name} here is ${others.join(" and ")}` : `there is no ${name} here`;
  const way = name === "pg_dump" ? ", or dump with --format portable, which needs none" : "";
  return new Unavailable(
    `The server is PostgreSQL ${major} and ${here}: install the tools of version ${major} (apt-get install postgresql-client-${major})${way}`,
  );
}
