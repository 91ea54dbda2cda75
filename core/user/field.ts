import { InvalidInput } from "../errors.ts";
import { canonicalUserName } from "./name.ts";

/** The canonical name of a person whom a field or parameter names. @throws InvalidInput naming that field */
export function parseUserName(field: string, name: string, domain: string | undefined): string {
  try {
    return canonicalUserName(name, domain);
  } catch (error) {
    if (error instanceof InvalidInput) throw new InvalidInput(field, error.detail, { cause: error });
    throw error;
  }
}
