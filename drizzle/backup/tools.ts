import { join } from "node:path";
import { Unavailable } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { type Container, containerAt, type ServerAddress, versionIn } from "./container.ts";

export type ToolName = "pg_dump" | "pg_restore";

/** A program to run: by its path, or by its name in the container of the server. */
export type Tool = { path: string; container?: undefined } | { name: ToolName; container: Container };

export interface ToolSearch {
  /** Whose version it must have, and whose container may have it. */
  server: ServerAddress;
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
export type FoundTool = { tool: Tool } | { others: string[] };

/**
 * Looks for the tool whose major version is the server's: an older one refuses the server, and what a newer one writes
 * the server's own tools cannot read. Where this machine has none, the server's own container may.
 */
export async function findTool(name: ToolName, major: number, search: ToolSearch): Promise<FoundTool> {
  const path = (search.env.PATH ?? "").split(":").filter((directory) => directory.startsWith("/"));
  const directories = [...new Set([...path, ...(search.directoriesOf ?? packagedDirectories)(major)])];
  const others = new Set<string>();
  for (const directory of directories) {
    const tool = join(directory, name);
    const version = await versionOf(tool, search.env);
    if (version === undefined) continue;
    if (Number.parseInt(version, 10) === major) return { tool: { path: tool } };
    others.add(version);
  }
  const container = await containerAt(search.server, search.env);
  if (container) {
    const version = parseVersion(await versionIn(container, name, search.env));
    if (version && Number.parseInt(version, 10) === major) return { tool: { name, container } };
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
    return parseVersion(text);
  } catch {
    return undefined;
  }
}

function parseVersion(text = ""): string | undefined {
  return /^pg_\w+ \(PostgreSQL\) (\d+[\w.]*)/.exec(text)?.[1];
}

/** What to type, for a tool that is there only in another version or not at all. */
export function missingTool(name: ToolName, major: number, others: readonly string[]): Unavailable {
  const here = others.length > 0 ? `${name} here is ${others.join(" and ")}` : `there is no ${name} here`;
  const way = name === "pg_dump" ? ", or dump with --format portable, which needs none" : "";
  return new Unavailable(
    `The server is PostgreSQL ${major} and ${here}: install the tools of version ${major} (apt-get install postgresql-client-${major})${way}`,
  );
}
