import { existsSync } from "node:fs";
import { aptInstall, ensure } from "./ensure.ts";

/** Not on everybody's PATH. */
export const pgbouncer = "/usr/sbin/pgbouncer";

/** Makes sure that it is there. @throws Error with the command */
export function ensurePgbouncer(): void {
  ensure({
    why: "The test of poolers needs PgBouncer",
    install: aptInstall("pgbouncer"),
    found: () => existsSync(pgbouncer),
  });
}
