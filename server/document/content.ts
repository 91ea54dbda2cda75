import { Elysia, t } from "elysia";
import { getContent, longestContent, putContent } from "../../core/incident/document/content.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { problemSchema, refusalsOfChange } from "../http/error.ts";
import { etagOfText } from "../http/etag.ts";
import { closed, nullable } from "../http/schema.ts";
import { documentParams } from "./model.ts";

const text = t.String({
  maxLength: longestContent,
  description: "Markdown, with the plugin that comes with svc",
});
const version = nullable(
  t.String({
    maxLength: 200,
    description:
      "The plugin's version of the text; null before the first one, or if the plugin has no versions",
  }),
);
const content = t.Object({ text, version }, closed);
/** A plugin's text may be longer than our limit for writes. */
const shownContent = t.Object({ text: t.String(), version }, closed);

const refusals = { ...refusalsOfChange, 503: problemSchema };

/** The text of a document, from the plugin that stores it. */
export const contentRoutes = (deps: Deps) =>
  new Elysia({ name: "content", prefix: "/documents" })
    .use(actorMacro(deps))
    .get(
      "/:document_id/content",
      async ({ actor, params, set }) => {
        const content = await getContent(deps, actor, Number(params.document_id));
        Object.assign(set.headers, etagOfText(content));
        return content;
      },
      { actor: true, params: documentParams, response: { 200: shownContent, ...refusals } },
    )
    .put(
      "/:document_id/content",
      async ({ actor, params, body, set }) => {
        const content = await putContent(deps, actor, { ...body, id: Number(params.document_id) });
        Object.assign(set.headers, etagOfText(content));
        return content;
      },
      { actor: true, params: documentParams, body: content, response: { 200: shownContent, ...refusals } },
    );
