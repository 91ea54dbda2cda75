import { Type } from "@sinclair/typebox";
import { Elysia, t } from "elysia";
import { groupings, mostYears, usualWeeks } from "../../core/incident/stats/figures.ts";
import { readStats } from "../../core/incident/stats/stats.ts";
import { parseInstant } from "../../platform/instant.ts";
import { toApi } from "../../platform/names.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { refusals } from "../http/error.ts";
import { closed, id, instant, nullable, oneOf } from "../http/schema.ts";

const statsQuery = t.Object(
  {
    since: t.Optional(
      t.String({
        description: `Reported at this instant or later. By default a Monday, so that there are ${usualWeeks} weeks`,
      }),
    ),
    until: t.Optional(
      t.String({
        description: `Reported before this instant, at most ${mostYears} years after \`since\`. By default now`,
      }),
    ),
    by: t.Optional(oneOf(groupings, { description: "The groups; `week` unless given" })),
  },
  closed,
);

const percentiles = (description: string) =>
  t.Object(
    { incidents: Type.Integer(), p50: nullable(Type.Integer()), p90: nullable(Type.Integer()) },
    { ...closed, description: `${description}, in seconds, and how many incidents have it` },
  );

const figures = {
  incidents: Type.Integer(),
  commander: percentiles("From the report until somebody took the role of commander"),
  report: percentiles("From the report to the first status report"),
  stable: percentiles("From the report until it was stable"),
  close: percentiles("From the report to the close"),
  impact: percentiles("From the start of the impact to its end"),
  cost: Type.Integer(),
  tasks: Type.Integer({ description: "Open tasks of those that are Closed" }),
};

const statsView = t.Object(
  {
    since: instant,
    until: instant,
    by: oneOf(groupings),
    restricted: oneOf(["all", "own"] as const, {
      description:
        "Which Restricted incidents are counted: `all` for admins, `own` are those in which you take part",
    }),
    total: t.Object(figures, closed),
    weeks: t.Array(
      t.Object({ week: t.String({ description: "Its Monday, in UTC" }), incidents: Type.Integer() }, closed),
      { description: "All weeks of the range" },
    ),
    groups: t.Array(
      t.Object(
        {
          id: nullable({ ...id, description: "Of the type, priority or service" }),
          name: t.String({ description: "The name; of a week, its Monday" }),
          ...figures,
        },
        closed,
      ),
      { description: "An incident that affects several services is in several groups" },
    ),
  },
  closed,
);

/** The numbers of the incidents that the actor may read. */
export const statsRoutes = (deps: Deps) =>
  new Elysia({ name: "stats" }).use(actorMacro(deps)).get(
    "/stats",
    async ({ actor, query: { since, until, by } }) => {
      const at = (field: string, text: string | undefined) =>
        text === undefined ? undefined : parseInstant(field, text);
      return toApi(
        await readStats(deps, actor, { since: at("since", since), until: at("until", until), by }),
      );
    },
    {
      actor: true,
      query: statsQuery,
      response: { 200: statsView, ...refusals },
      detail: { summary: "Count incidents and measure how long they took" },
    },
  );
