import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Visibility } from "./participants.ts";

export type Role = "nobody" | "member" | "participant" | "admin";

/** A row of a table in docs/permissions.md. */
export interface Permission {
  /** The text of the first cell, without its quotes. */
  request: string;
  /** The application's name of the route: `GET /incidents/:incident_id`. */
  route: string;
  cells: { role: Role | "everybody"; visibility?: Visibility; answer: string }[];
}

/** Reads the rows of the tables in docs/permissions.md. */
export function readPermissions(): Permission[] {
  const page = readFileSync(join(import.meta.dir, "../../../docs/permissions.md"), "utf8");
  let heads: string[] = [];
  const permissions: Permission[] = [];
  for (const line of page.split("\n").filter((line) => line.startsWith("|"))) {
    const [first = "", ...cells] = line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
    if (first.startsWith("---")) continue;
    const [, route] = /^`([A-Z]+ \S+)`/.exec(first) ?? [];
    if (route === undefined) {
      heads = cells;
      continue;
    }
    if (cells.length !== heads.length) throw new Error(`${first} has ${cells.length} answers`);
    permissions.push({
      request: first.replaceAll("`", ""),
      route: route.replaceAll(/\{(\w+)\}/g, ":$1"),
      cells: cells.map((answer, i) => {
        const [role, visibility] = heads[i]!.split(", ") as [Role, Visibility | undefined];
        return { role, visibility, answer };
      }),
    });
  }
  return permissions;
}
