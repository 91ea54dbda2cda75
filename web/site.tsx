import type { Server } from "bun";
import pLimit from "p-limit";
import type { VNode } from "preact";
import { once } from "../core/idempotency/once.ts";
import { runFlowWithin } from "../core/incident/steps/run.ts";
import { Changed, InProgress, KeyReused, NotFound, SvcError, Unauthenticated } from "../platform/errors.ts";
import { requireOwnOrigin } from "../server/auth/origin.ts";
import { addressOf, type Deps } from "../server/deps.ts";
import { readForm, requireConnection } from "../server/http/body.ts";
import { fromDatabase } from "../server/http/error.ts";
import { inTime, redirect } from "../server/page/page.ts";
import { answer, type DocumentProps } from "./document.tsx";
import { mostChoices } from "./incident/choices.ts";
import { KeptPage, type Trouble } from "./pages/forms.tsx";
import type { Field } from "./parts/form.tsx";
import type { ReaderFacts } from "./parts/reader.ts";
import { app, signInAddress } from "./paths.ts";
import { Values } from "./values.ts";
import { type Visitor, Visitors } from "./visitor.ts";

/** How many forms occupy a connection at once, so that enough are left for reads. */
const forms = pLimit(3);
/** How long an answer waits for the steps that follow; the rest continues without it. */
const flowMilliseconds = 300;
/** Far more than any text may have, so that a text which is too long is shown again instead of lost. */
const largestPageForm = 4 * 1024 * 1024;
/** Of somebody who is no longer signed in: the longest note in the longest encoding. */
const largestKeptForm = 256 * 1024;
/** A team has a box for each choice of three lists, and a few fields of its own. */
const mostFields = 3 * mostChoices + 50;

/** A request, as Elysia passes it. */
export interface Arrival {
  request: Request;
  server: Server<unknown> | null;
  params: Record<string, string>;
}

/** A request of somebody who is signed in. */
export interface Visit extends Arrival {
  visitor: Visitor;
  url: URL;
}

/** How a form is done. */
export interface Submission {
  /**
   * Changes something through `deps` alone, in one transaction, so that a form that is sent twice does it once.
   * @returns the path of the result
   */
  run(deps: Deps): Promise<string>;
  /** It names the version that it replaces, so it runs as often as it is sent, and outside of a transaction. */
  isVersioned?: boolean;
  /** The page with the form again: its fields as they would be now. `filled` has put in what was written. */
  again(fill: (fields: readonly Field[]) => { fields: Field[]; trouble: Trouble }): Promise<PageContent>;
}

export interface PageContent extends Omit<DocumentProps, "reader" | "children"> {
  content?: VNode;
  /** The names of people that the page knows, by user name. */
  names?: ReaderFacts["names"];
}

/** What all pages share: who reads them, and how a form is received. */
export class Site {
  readonly visitors: Visitors;

  constructor(readonly deps: Deps) {
    this.visitors = new Visitors(deps);
  }

  /** A handler for a page. A reader who is not signed in is sent to the sign-in. */
  read(work: (visit: Visit) => Promise<PageContent | Response>) {
    const read = async ({ request, server, params }: Arrival): Promise<Response> => {
      const url = new URL(request.url);
      const visitor = await this.visitors.find(request);
      if (!visitor) return redirect(signInAddress(`${url.pathname}${url.search}`));
      const made = await work({ request, server, params, visitor, url });
      return made instanceof Response ? made : this.#show({ request, visitor }, made);
    };
    return (arrival: Arrival) => inTime(read(arrival));
  }

  /** A handler for a stream. Nobody can sign in there, so it leads nowhere. */
  stream(work: (visit: Visit) => Promise<Response>) {
    return async ({ request, server, params }: Arrival): Promise<Response> => {
      const visitor = await inTime(this.visitors.find(request));
      if (!visitor) throw new Unauthenticated("Sign in first");
      return work({ request, server, params, visitor, url: new URL(request.url) });
    };
  }

  /**
   * A handler for a form: it does what the form asks for, once however often it is sent, and goes to the result. What cannot
   * be done is shown again with everything that was written; so is what takes so long that nobody knows yet whether it is
   * done. A form that only looks at something leads to a page.
   */
  submit(work: (visit: Visit, values: Values, address: string) => Promise<Submission | PageContent>) {
    return async ({ request, server, params }: Arrival): Promise<Response> => {
      const { deps } = this;
      requireOwnOrigin(deps.config, request);
      const find = (again?: boolean) => inTime(this.visitors.find(request, again)).catch(unsettled);
      const begun = await find();
      const url = new URL(request.url);
      const isSignedIn = begun !== undefined && !(begun instanceof SvcError);
      const fields = await readForm(request, isSignedIn ? largestPageForm : largestKeptForm, mostFields);
      await requireConnection(request);
      // The form may have taken minutes to arrive: it is done with the rights that its sender has now.
      const found = isSignedIn ? await find(true) : begun;
      const [visitor, trouble] = found instanceof SvcError ? [undefined, found] : [found, undefined];
      if (trouble || !visitor?.isOwn(fields.get("csrf") ?? ""))
        return this.#kept(url, fields, visitor, trouble);
      const visit = { request, server, params, visitor, url };
      const address = addressOf(deps, request, server);
      const done = await inTime(this.#do(visit, fields, (values) => work(visit, values, address))).catch(
        unsettled,
      );
      if (done instanceof Response) return done;
      deps.log.warn({ err: done }, "nobody knows whether a form is done");
      return this.#kept(url, fields, visitor, done);
    };
  }

  async #do(
    visit: Visit,
    fields: ReadonlyMap<string, string>,
    work: (values: Values) => Promise<Submission | PageContent>,
  ): Promise<Response> {
    const values = new Values(fields);
    const submission = await work(values);
    if (!("run" in submission)) return this.#show(visit, submission);
    try {
      return redirect(await this.#runOnce(visit, fields, submission));
    } catch (error) {
      if (!(error instanceof SvcError) || error.code === "internal" || isUnsettled(error)) throw error;
      // It throws like a GET for what is gone or hidden.
      const page = await submission.again((now) => filled(now, values, error));
      return this.#show(visit, page, statusOf(error));
    }
  }

  async #runOnce(
    { visitor, url }: Visit,
    fields: ReadonlyMap<string, string>,
    { run, isVersioned }: Submission,
  ): Promise<string> {
    if (isVersioned) return run(this.deps);
    const { csrf: _, key = "", ...content } = Object.fromEntries(fields);
    const keyed = { actor: visitor.actor.user, method: "POST", path: url.pathname, key };
    const { headers } = await forms(() =>
      once(this.deps, { ...keyed, content: JSON.stringify(content) }, async ({ db }) => ({
        status: 303,
        headers: { location: await run({ ...this.deps, db }) },
        body: "",
      })),
    );
    const { location = app } = headers;
    const id = location.match(/^\/app\/incidents\/(\d+)/)?.[1];
    if (id !== undefined) await runFlowWithin(this.deps, Number(id), flowMilliseconds);
    return location;
  }

  #show(
    { request, visitor }: Pick<Visit, "request" | "visitor">,
    { content, names, ...page }: PageContent,
    status = 200,
  ): Response {
    return answer(
      { ...page, reader: this.#readerOf(visitor, names), children: content },
      { status, request },
    );
  }

  /**
   * For a sign-in that has ended meanwhile, or is a new one, and for `trouble`: the user looks at it, and sends it again. The
   * key stays, so that it is done once in any case.
   */
  #kept(
    url: URL,
    fields: ReadonlyMap<string, string>,
    visitor: Visitor | undefined,
    trouble?: SvcError,
  ): Response {
    const isSignedIn = visitor !== undefined;
    return answer(
      {
        title: "Send it again",
        reader: visitor ? this.#readerOf(visitor) : null,
        children: <KeptPage path={url.pathname} fields={fields} isSignedIn={isSignedIn} trouble={trouble} />,
      },
      trouble
        ? { status: trouble instanceof InProgress ? 409 : 503, headers: { "retry-after": "5" } }
        : { status: isSignedIn ? 403 : 401 },
    );
  }

  #readerOf(
    { actor: { user, admin }, timeZone, isZoneDefault, csrf }: Visitor,
    names: ReaderFacts["names"] = new Map(),
  ): ReaderFacts {
    return { user, admin, now: this.deps.clock.now(), timeZone, isZoneDefault, csrf, names };
  }
}

/** After which nobody knows whether a form is done. */
const isUnsettled = (error: SvcError) => error.code === "unavailable" || error instanceof InProgress;

/** @throws the error, if it says whether the form is done */
function unsettled(error: unknown): SvcError {
  const known = error instanceof SvcError ? error : fromDatabase(error);
  if (!known || !isUnsettled(known)) throw error;
  return known;
}

const statusOf = ({ code }: SvcError) =>
  (
    ({ forbidden: 403, not_found: 404, conflict: 409, idempotency_key_reused: 422 }) as Partial<
      Record<SvcError["code"], number>
    >
  )[code] ?? 400;

/**
 * The fields with what the user has sent. After somebody else's change, it shows both values, and the form is then about
 * the stored version.
 */
function filled(
  fields: readonly Field[],
  values: Values,
  error: SvcError,
): { fields: Field[]; trouble: Trouble } {
  const isChanged = error instanceof Changed;
  const sent = (field: Field) =>
    field.kind === "check" ? (values.isTicked(field.name) ? "on" : undefined) : values.text(field.name);
  const isStale = (field: Field) => field.kind !== "hidden" && (sent(field) ?? "") !== (field.value ?? "");
  const conflicts = isChanged
    ? fields
        .filter(isStale)
        .map((field) => [field.label, labelOf(field, sent(field)), labelOf(field, field.value)] as const)
    : undefined;
  return {
    fields: fields.map((field) =>
      isChanged && field.kind === "hidden" ? field : { ...field, value: sent(field) },
    ),
    trouble: {
      detail: isChanged
        ? "Somebody has changed this meanwhile. Save again to store your version"
        : error instanceof KeyReused
          ? "You have sent this before, with another text. Look whether that is stored before you send it again"
          : error.detail,
      conflicts,
    },
  };
}

function labelOf({ choices }: Field, value = ""): string {
  return choices?.find(([one]) => one === value)?.[1] ?? value;
}

/** The id in a path or a query. */
export function idIn(text: string | null | undefined): number | undefined {
  return text && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

/** @throws NotFound */
export function pathId(text: string | undefined, missing: string): number {
  const id = idIn(text);
  if (id === undefined) throw new NotFound(missing);
  return id;
}
