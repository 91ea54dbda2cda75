import { join } from "node:path";
import { Unavailable } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { type Container, containerAt, type ServerAddress, versionIn } from "./container.ts";

export type ToolName = "pg_dump" | "pg_restore";

/** A program to run: by its path, or by its name in the server's container. */
export type Tool = { path: string; container?: undefined } | { name: ToolName; container: Container };

export interface ToolSearch {
  /** The server whose version the tool must have, and whose container may contain it. */
  server: ServerAddress;
  /** PATH determines where to look. */
  env: Environment;
  /** Where packages put the tools of one major version; defaults to the directories of common systems. */
  directoriesOf?: (major: number) => readonly string[];
}

/** Where the tools of several versions are installed side by side. */
function packagedDirectories(major: number): string[] {
  return [
    `/usr/lib/postgresql/${major}/bin`,
    `/usr/pgsql-${major}/bin`,
    `/opt/homebrew/opt/postgresql@${major}/bin`,
    `/usr/local/opt/postgresql@${major}/bin`,
  ];
}

/** A tool of the server's major version, or the versions found instead. */
type FoundTool = { tool: Tool } | { others: string[] };

/**
 * Finds the tool with the server's major version: an older one refuses the server, and the server's own tools cannot
 * read the output of a newer one. If this machine has none, the server's container may.
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

/** The same. @throws Unavailable if there is none of that version */
export async function requireTool(name: ToolName, major: number, search: ToolSearch): Promise<Tool> {
  const found = await findTool(name, major, search);
  if ("tool" in found) return found.tool;
  throw missingTool(name, major, found.others);
}

/** The version that a PostgreSQL program reports; undefined if it does not exist or is another program. */
async function versionOf(tool: string, env: Environment): Promise<string | undefined> {
  if (!(await Bun.file(tool).exists())) return undefined;
  try {
    const child = Bun.spawn([tool, "--version"], {
      // Debian's wrapper of this name chooses a version by the server's location.
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

/** The error for a tool that exists only in another version or not at all, with the command to install it. */
export function missingTool(name: ToolName, major: number, others: readonly string[]): Unavailable {
  const here = others.length > 0 ? `${name} here is ${others.join(" and ")}` : `there is no ${name} here`;
  const way = name === "pg_dump" ? ", or dump with --format portable, which needs none" : "";
  return new Unavailable(
    `The server is PostgreSQL ${major} and ${here}: install the tools of version ${major} (apt-get install postgresql-client-${major})${way}`,
  );
}
