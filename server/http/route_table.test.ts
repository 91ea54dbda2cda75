import { expect, test } from "bun:test";
import { Elysia } from "elysia";
import { routeTable } from "./route_table.ts";

test("parameters are in braces, and a path with two spellings has two rows", () => {
  const app = new Elysia()
    .get("/challenge:validator/:challengeToken", "")
    .get("/incidents/:incident_id/events/:event_id", "");
  expect(routeTable(app)).toEqual([
    { path: "/challenge:validator/{challengeToken}", authenticated: false, method: "GET" },
    { path: "/challenge_validator/{challengeToken}", authenticated: false, method: "GET" },
    { path: "/incidents/{incident_id}/events/{event_id}", authenticated: false, method: "GET" },
  ]);
});

test("the challenge protocol has a row for each address, and no row is for every method", () => {
  const app = new Elysia().get("/noauth/v1/:operation/:argument", "").all("/noauth/*", "");
  expect(routeTable(app).map(({ method, path }) => `${method} ${path}`)).toEqual([
    "GET /noauth/v1/challenge:generator/{userName}",
    "GET /noauth/v1/challenge:poller/{challengeToken}",
    "GET /noauth/v1/challenge_generator/{userName}",
    "GET /noauth/v1/challenge_poller/{challengeToken}",
  ]);
});
