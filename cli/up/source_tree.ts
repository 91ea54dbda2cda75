import { SvcError } from "../../platform/errors.ts";
import { hasSourceTree } from "../../platform/own_command.ts";

/** @throws SvcError in the single executable, which does not carry PostgreSQL and the trial sign-in provider */
export function assertSourceTree(command: string): void {
  if (hasSourceTree) return;
  throw new SvcError(
    "configuration",
    `${command} is for trials and needs the source tree: clone it and type npm start`,
  );
}
