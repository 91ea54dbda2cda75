import { expect, test } from "bun:test";
import { event } from "../../drizzle/schema/index.ts";
import { startPage } from "./page.ts";

test("a list without searchable text refuses a search", () => {
  const list = {
    name: "events",
    id: event.id,
    defaultSort: "at",
    sorts: { at: { by: event.at, kind: "instant" } },
  } as const;
  const refused = expect.objectContaining({ code: "invalid_input", field: "q" });
  expect(() => startPage(list, { q: "disk" }, {})).toThrow(refused);
  // Not even with a sort other than the best match.
  expect(() => startPage(list, { q: "disk", sort: "at" }, {})).toThrow(refused);
});
