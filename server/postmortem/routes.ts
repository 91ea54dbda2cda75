import { Elysia, t } from "elysia";
import {
  draftPostmortem,
  getPostmortem,
  type Postmortem,
} from "../../core/incident/postmortem/postmortem.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { problemSchema, refusalsOfChange, refusalsOfOne } from "../http/error.ts";
import { closed, id, instant, nullable, oneOf } from "../http/schema.ts";
import { incidentParams } from "../incident/model.ts";

const entryView = t.Object({ event_id: id, at: instant, who: t.String(), text: t.String() }, closed);

const postmortemView = t.Object(
  {
    document_id: nullable({ ...id, description: "Null before it is drafted; `text` is then the draft" }),
    text: t.String({ description: "Markdown" }),
    version: nullable(t.String({ description: "As `version` of the document's content" })),
    new_entries: t.Array(entryView, {
      description:
        "Entries of the timeline that were written after all that were added to the text, and all that its lines link to",
    }),
    new_tasks: t.Array(t.Object({ id, description: t.String() }, closed)),
    missing_sections: t.Array(t.String(), {
      description: "Sections of a draft that a text which links to no entry does not have",
    }),
    empty_sections: t.Array(t.String()),
    outdated_entries: t.Array(
      t.Object(
        {
          event_id: id,
          change: oneOf(["corrected", "withdrawn", "redacted"] as const),
          who: t.String({ description: "Who made the last change" }),
          at: instant,
        },
        closed,
      ),
      {
        description:
          "Entries of the timeline that the text links to, and whose earlier words it may still have: they were withdrawn or redacted, or corrected after they were added to the text, and a link to them is elsewhere than before exactly their words as they are now",
      },
    ),
    gaps: t.Array(t.Object({ from: instant, to: instant }, closed), {
      description: "Half an hour or more of an Active incident in which nothing was written down",
    }),
  },
  closed,
);

const drafted = t.Optional(
  t.Object(
    {
      entries: t.Optional(
        t.Array(id, {
          maxItems: 2000,
          description: "Of `new_entries`, those to add; by default all. An empty text gets all",
        }),
      ),
      sections: t.Optional(
        t.Boolean({
          description: "Whether to add `missing_sections`, as by default. An empty text gets all",
        }),
      ),
    },
    closed,
  ),
);

function viewOf({ documentId, text, version, news, gaps, empty, outdated }: Postmortem) {
  return {
    document_id: documentId,
    text,
    version,
    new_entries: news.happenings.map(({ eventId, at, who, text }) => ({
      event_id: eventId,
      at: at.toISOString(),
      who,
      text,
    })),
    new_tasks: news.tasks.map(({ id, description }) => ({ id, description })),
    missing_sections: news.sections,
    empty_sections: empty,
    outdated_entries: outdated.map(({ eventId, change, who, at }) => ({
      ...{ event_id: eventId, change, who },
      at: at.toISOString(),
    })),
    gaps: gaps.map(({ from, to }) => ({ from: from.toISOString(), to: to.toISOString() })),
  };
}

/** The post-mortem of an incident that the actor may read. */
export const postmortemRoutes = (deps: Deps) =>
  new Elysia({ name: "postmortem", prefix: "/incidents/:incident_id/postmortem" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, params }) => viewOf(await getPostmortem(deps, actor, Number(params.incident_id))),
      {
        actor: true,
        detail: { summary: "Get the post-mortem of an incident" },
        params: incidentParams,
        response: { 200: postmortemView, ...refusalsOfOne, 503: problemSchema },
      },
    )
    .post(
      "/",
      async ({ actor, params, body }) => {
        const wanted = { incidentId: Number(params.incident_id), ...body };
        return viewOf(await draftPostmortem(deps, actor, wanted));
      },
      {
        actor: true,
        detail: { summary: "Draft or extend the post-mortem of an incident" },
        params: incidentParams,
        body: drafted,
        response: { 200: postmortemView, ...refusalsOfChange, 503: problemSchema },
      },
    );
