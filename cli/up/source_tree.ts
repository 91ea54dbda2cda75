import { SvcError } from "../../core/errors.ts";

/** There in the single executable only (scripts/build.ts). */
declare const SVC_REVISIONS: unknown;

/** @throws SvcError in the single executable, which does not carry PostgreSQL and the trial sign-in provider */
export function assertSourceTree(command: string): void {
  if (typeof SVC_REVISIONS === "undefined") return;
  throw new SvcError(
    "configuration",
    `${command} is for trials and needs the source tree: clone it and type npm start`,
  );
}
