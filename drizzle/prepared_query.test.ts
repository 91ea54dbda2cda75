import { expect, test } from "bun:test";
import type { Context } from "../core/context.ts";
import { preparedQuery } from "./prepared_query.ts";

test("a query is built once per database", () => {
  const [one, other] = [{} as Context["db"], {} as Context["db"]];
  let made = 0;
  const query = preparedQuery((db) => {
    made += 1;
    return { db };
  });
  expect(query(one)).toBe(query(one));
  expect(query(other).db).toBe(other);
  expect(query(one).db).toBe(one);
  expect(made).toBe(2);
});
