import { InvalidInput } from "../../../platform/errors.ts";
import { canonicalUserName } from "./name.ts";

/** Returns the canonical name of the person or list in a field or parameter. @throws InvalidInput naming that field */
export function parseUserName(field: string, name: string, domain: string | undefined): string {
  try {
    return canonicalUserName(name, domain);
  } catch (error) {
    if (error instanceof InvalidInput) throw new InvalidInput(field, error.detail, { cause: error });
    throw error;
  }
}
