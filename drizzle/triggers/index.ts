import { notifyTriggers } from "./notify.ts";
import { searchTriggers } from "./search.ts";

/** Every trigger of ours, and its function, is named so; what is and is not defined here is removed. */
export const triggerPrefix = "svc_";

/**
 * A trigger for each row, and its function. Never for certain columns only (UPDATE OF): PostgreSQL then refuses to
 * change their type or to drop them, and revisions do both.
 */
export interface Trigger {
  name: string;
  table: string;
  /** The columns of the table that the function speaks of; without one of them there is no trigger. */
  needs: readonly string[];
  timing: "before" | "after";
  events: readonly ("insert" | "update" | "delete")[];
  function: string;
  /** The function's body, in PL/pgSQL. Names in it are qualified, for the search path is the caller's. */
  body: string;
  /** The column that it derives, and the expression over the row's other columns. */
  fill?: { column: string; value: string };
}

/** The one definition of all triggers: `svc database upgrade` and `sync-triggers` make the database agree with it. */
export const triggers: readonly Trigger[] = [...notifyTriggers, ...searchTriggers];
