import { InvalidInput } from "../../../platform/errors.ts";
import { canonicalUserName } from "./name.ts";

/** The canonical name of a person, or address of a list, that a field or parameter holds. @throws InvalidInput naming that field */
export function parseUserName(field: string, name: string, domain: string | undefined): string {
  try {
    return canonicalUserName(name, domain);
  } catch (error) {
    if (error instanceof InvalidInput) throw new InvalidInput(field, error.detail, { cause: error });
    throw error;
  }
}
