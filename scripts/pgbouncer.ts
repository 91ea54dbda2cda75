import { existsSync } from "node:fs";
import { aptInstall, ensure } from "./ensure.ts";

/** It is not on every user's PATH. */
export const pgbouncer = "/usr/sbin/pgbouncer";

/** Ensures that it is installed. @throws Error with the command */
export function ensurePgbouncer(): void {
  ensure({
    why: "The test of poolers needs PgBouncer",
    install: aptInstall("pgbouncer"),
    found: () => existsSync(pgbouncer),
  });
}
