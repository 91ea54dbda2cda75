import type { ApiAnswer, Person } from "./people.ts";

/** Reads the pages of a list, one after the other. */
export async function* pagesOf(
  person: Pick<Person, "call">,
  path: string,
): AsyncGenerator<ApiAnswer["body"], void> {
  const separator = path.includes("?") ? "&" : "?";
  let cursor: string | null = null;
  do {
    const address: string = cursor === null ? path : `${path}${separator}cursor=${cursor}`;
    const { http, body } = await person.call("GET", address);
    if (http !== 200) throw new Error(`GET ${address}: ${http} ${JSON.stringify(body)}`);
    yield body;
    cursor = body.next_cursor;
  } while (cursor !== null);
}

/** The items on all pages of a list. */
export async function itemsOf(person: Pick<Person, "call">, path: string): Promise<ApiAnswer["body"][]> {
  return (await Array.fromAsync(pagesOf(person, path))).flatMap(({ items }) => items);
}
