import { expect, test } from "bun:test";

test("toMatchObject compares dates, at any depth", async () => {
  const rows = [{ at: new Date(1), more: { at: new Date(2) }, id: 7 }];
  expect(rows).toMatchObject([{ at: new Date(1), more: { at: new Date(2) } }]);
  expect(rows).not.toMatchObject([{ at: new Date(2) }]);
  expect(rows).not.toMatchObject([{ more: { at: new Date(1) } }]);
  expect(rows).not.toMatchObject([{ id: new Date(7) }]);
  expect([{ at: null }]).not.toMatchObject([{ at: new Date(1) }]);
  await expect(Promise.resolve({ at: new Date(1) })).resolves.not.toMatchObject({ at: new Date(2) });
  expect(() => expect(rows).toMatchObject([{ id: 8 }])).toThrow("8");
});

test("toMatchObject does not change its argument", () => {
  const row = { at: new Date(1), id: 7, list: [{ id: 8 }] };
  expect(row).toMatchObject({ at: new Date(1), id: expect.any(Number), list: [{ id: expect.any(Number) }] });
  expect(row).toEqual({ at: new Date(1), id: 7, list: [{ id: 8 }] });
});
