import { expect, test } from "bun:test";
import { fromApi, toApi } from "./names.ts";

test("a record is shown with names in snake_case and times as text, at every depth", () => {
  const at = new Date("2026-11-20T12:00:00.000Z");
  const record = {
    id: 1,
    closedAt: null,
    sha256: "a",
    roles: [{ assumedAt: at, isX: true }],
    owner: { fullName: "A" },
  };
  expect(toApi(record)).toEqual({
    id: 1,
    closed_at: null,
    sha256: "a",
    roles: [{ assumed_at: "2026-11-20T12:00:00.000Z", is_x: true }],
    owner: { full_name: "A" },
  });
});

test("a body is read with names in camelCase, and its times stay texts", () => {
  const body = { incident_type_id: 3, templates: [{ document_id: 1 }], resolve_by: "2026-11-20T12:00:00Z" };
  expect(fromApi(body)).toEqual({
    incidentTypeId: 3,
    templates: [{ documentId: 1 }],
    resolveBy: "2026-11-20T12:00:00Z",
  });
});
