import { InvalidInput } from "../errors.ts";
import { canonicalUserName } from "../user/name.ts";

/** The canonical spelling of an address: whoever signs in under it is the one. @throws InvalidInput naming `field` */
export function parseEmail(field: string, text: string, domain: string | undefined): string {
  try {
    return canonicalUserName(text, domain);
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    throw new InvalidInput(field, `The field ${field} is not like name@example.com`, { cause: error });
  }
}
