import { Type } from "@sinclair/typebox";
import { Elysia, t } from "elysia";
import { getContent, longestContent, putContent } from "../../core/incident/document/content.ts";
import { getDocument } from "../../core/incident/document/get.ts";
import { redactDocument } from "../../core/incident/document/redact.ts";
import { type DocumentVersion, getVersion, listVersions } from "../../core/incident/document/versions.ts";
import { actorMacro } from "../auth/actor.ts";
import { addressOf, type Deps } from "../deps.ts";
import { redactedEvent, redactionNotice } from "../event/model.ts";
import {
  problemSchema,
  refusalsOfChange,
  refusalsOfOne,
  refusalsOfPostWithin,
  refusalsWithin,
} from "../http/error.ts";
import { etagOfText } from "../http/etag.ts";
import { withIdempotencyKey } from "../http/idempotency.ts";
import { closed, idText, instant, listQuery, listQueryOf, nullable, pageOf } from "../http/schema.ts";
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

const shownVersion = {
  version: t.String({ description: "As `version` of the content, when this was the text" }),
  author: nullable(
    t.String({
      description: "A user name, `worker` or `system`; null if a release that kept no versions wrote it",
    }),
  ),
  at: instant,
  redacted: t.Boolean({ description: "Its text was removed by an admin" }),
};
export const versionView = t.Object(shownVersion, closed);
const versionWithText = t.Object({ ...shownVersion, text: t.String() }, closed);
const versionParams = t.Object({ ...documentParams.properties, version: idText }, closed);

const redactedDocument = t.Object(
  {
    ...redactedEvent.properties,
    version: t.Optional({
      ...idText,
      description: "An earlier version; without it, the text and all its versions are removed",
    }),
  },
  closed,
);
export const documentRedactionView = t.Object(
  {
    version: t.String({ description: "Of the current text" }),
    texts: Type.Integer({ description: "How many texts were removed" }),
    notice: t.String({ description: "What else still has the text" }),
  },
  closed,
);
const documentNotice = `${redactionNotice}, and tasks that were found in it keep their words`;

const viewOf = ({ version, author, at, isRedacted }: DocumentVersion) => ({
  version: String(version),
  author,
  at: at.toISOString(),
  redacted: isRedacted,
});

const refusals = { ...refusalsOfChange, 503: problemSchema };

/** The text of a document, from the plugin that stores it, and its versions if they are in svc's database. */
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
    )
    .get(
      "/:document_id/versions/",
      async ({ actor, params, query }) => {
        const id = Number(params.document_id);
        const page = await listVersions(deps, actor, { ...listQueryOf(query), id });
        return { ...page, items: page.items.map(viewOf) };
      },
      {
        actor: true,
        params: documentParams,
        query: listQuery("`version` or `-version` (default)"),
        response: { 200: pageOf(versionView), ...refusalsWithin },
      },
    )
    .get(
      "/:document_id/versions/:version",
      async ({ actor, params }) => {
        const wanted = { id: Number(params.document_id), version: Number(params.version) };
        const found = await getVersion(deps, actor, wanted);
        return { ...viewOf(found), text: found.text };
      },
      { actor: true, params: versionParams, response: { 200: versionWithText, ...refusalsOfOne } },
    )
    .post(
      "/:document_id/redact",
      async ({ actor, params, body, request, server }) => {
        const id = Number(params.document_id);
        const address = addressOf(deps, request, server);
        const version = body.version === undefined ? undefined : Number(body.version);
        const wanted = { id, version, reason: body.reason, address };
        const made = await withIdempotencyKey(
          deps,
          { actor, request, body },
          async (context) => {
            const { version, texts } = await redactDocument(context, actor, wanted);
            return { version: String(version), texts, notice: documentNotice };
          },
          async () => void (await getDocument(deps, actor, id)),
        );
        return made.body;
      },
      {
        actor: true,
        params: documentParams,
        body: redactedDocument,
        response: { 200: documentRedactionView, ...refusalsOfPostWithin },
      },
    );
