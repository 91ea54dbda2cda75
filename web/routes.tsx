import { Elysia } from "elysia";
import { signOutEverywhere } from "../core/auth/session/issuer_session.ts";
import { signOutSession } from "../core/auth/session/session.ts";
import { boardFacts } from "../core/incident/board/board.ts";
import { listIncidents } from "../core/incident/incident/list.ts";
import { reportIncident } from "../core/incident/lifecycle/report.ts";
import { searchAll } from "../core/incident/search/search.ts";
import { getTask } from "../core/incident/task/get.ts";
import type { incidentStatuses } from "../drizzle/schema/index.ts";
import { Forbidden, InvalidInput, NotFound, noRoute } from "../platform/errors.ts";
import { isLookAhead, requireOwnOrigin } from "../server/auth/origin.ts";
import { addressOf, type Deps } from "../server/deps.ts";
import { readForm, requireConnection } from "../server/http/body.ts";
import { inTime, redirect } from "../server/page/page.ts";
import { streamHeaders } from "../server/stream/connection.ts";
import { withoutTimeout } from "../server/stream/routes.ts";
import type { IncidentStreams } from "../server/stream/streams.ts";
import { accessPages } from "./access.tsx";
import { adminPages } from "./admin/routes.tsx";
import { assetAnswer } from "./assets.ts";
import { documentPages } from "./documents.tsx";
import { barsOf, choicesOf, incidentFields } from "./incident/choices.ts";
import { incidentPages } from "./incident/routes.tsx";
import { Board, type BoardTab, boardTabs } from "./pages/board.tsx";
import { FormPage, type Trouble } from "./pages/forms.tsx";
import { messagePage } from "./pages/message.tsx";
import { Search } from "./pages/search.tsx";
import type { Field } from "./parts/form.tsx";
import { Keys } from "./parts/keys.tsx";
import { app, incidentPath, profilePath, returnPath, signInAddress, signInPath } from "./paths.ts";
import { numbersPages } from "./numbers.tsx";
import { profilePages } from "./profile.tsx";
import { postmortemPages } from "./postmortem.tsx";
import { idIn, type PageContent, pathId, Site, type Visit } from "./site.tsx";
import { workPages } from "./work.tsx";

const boardLength = 50;

const statusesOf: Record<BoardTab, (typeof incidentStatuses)[number][] | undefined> = {
  open: ["Active", "Stable"],
  closed: ["Closed"],
  all: undefined,
};

/** The pages: each one is a function of the data that its reader may read, as the API is. */
export function webRoutes(deps: Deps, streams: IncidentStreams) {
  const site = new Site(deps);
  const { config } = deps;

  async function board({ visitor, url }: Visit): Promise<PageContent> {
    const { actor } = visitor;
    const query = url.searchParams;
    const tab = boardTabs.find((one) => one === query.get("show")) ?? "open";
    const [type, priority] = [idIn(query.get("type")), idIn(query.get("priority"))];
    const mine = query.has("mine");
    const [{ items: incidents, next_cursor: next }, { types, priorities, ranked }] = await Promise.all([
      listIncidents(deps, actor, {
        statuses: statusesOf[tab],
        incidentTypeId: type,
        incidentPriorityId: priority,
        participant: mine ? actor.user : undefined,
        cursor: query.get("cursor") ?? undefined,
        limit: boardLength,
      }),
      choicesOf(deps, actor),
    ]);
    const facts = await boardFacts(
      deps,
      actor,
      incidents.map(({ id }) => id),
    );
    const filters = { type: type?.toString(), priority: priority?.toString(), mine };
    const page = { tab, filters, incidents, facts, next, types, priorities, barsOf: barsOf(ranked) };
    return {
      title: tab === "open" ? `${incidents.length}${next ? "+" : ""} open` : "Incidents",
      here: "board",
      stream: `${app}/streams`,
      content: <Board page={page} />,
    };
  }

  const title = "Report an incident";
  const reporting = (fill: { fields: readonly Field[]; trouble?: Trouble }): PageContent => ({
    title,
    here: "report",
    content: (
      <FormPage
        title={title}
        about="Somebody on call becomes its commander, and is told at once."
        button="Report"
        action={`${app}/report`}
        {...fill}
      />
    ),
  });

  const reportFields = async (
    { visitor }: Visit,
    value: (name: string) => string | undefined,
  ): Promise<Field[]> => [
    ...(await incidentFields(deps, visitor.actor, value)),
    {
      name: "visibility",
      label: "Visibility",
      kind: "choice",
      value: value("visibility"),
      choices: [
        ["", "as usual for the type"],
        ["Open", "Open: everybody may read it"],
        ["Restricted", "Restricted: only those who take part, and admins"],
      ],
    },
    {
      name: "commander",
      label: "Commander",
      kind: "line",
      value: value("commander"),
      help: "By default whoever is on call, or you",
    },
  ];

  const report = site.submit(async (visit, values) => ({
    run: async (context) => {
      const visibility = values.given("visibility");
      if (visibility !== undefined && visibility !== "Open" && visibility !== "Restricted")
        throw new InvalidInput("visibility", "Choose one of the list");
      const { id } = await reportIncident(context, visit.visitor.actor, {
        title: values.text("title"),
        description: values.text("description"),
        incidentTypeId: values.id("type"),
        incidentPriorityId: values.id("priority"),
        visibility,
        commander: values.given("commander"),
      });
      return incidentPath(id);
    },
    again: async (fill) => reporting(fill(await reportFields(visit, () => undefined))),
  }));

  return new Elysia({ name: "pages", prefix: app })
    .get("/assets/:name", ({ request }) => {
      const found = assetAnswer(request);
      if (!found) throw new NotFound(noRoute);
      return found;
    })
    .get("/sign_in", async ({ request, server }) => {
      if (request.method !== "GET" || isLookAhead(request)) throw new NotFound(noRoute);
      const returnTo = returnPath(new URL(request.url).searchParams.get("return"));
      if (await inTime(site.visitors.find(request))) return redirect(returnTo);
      return site.visitors.signIn(request, server, returnTo);
    })
    .post("/sign_out", async ({ request, server }) => {
      requireOwnOrigin(config, request);
      const begun = await site.visitors.find(request);
      const form = await readForm(request);
      await requireConnection(request);
      // The form may have taken minutes to arrive: a sign-in that has ended meanwhile ends nothing.
      const visitor = begun && (await site.visitors.find(request, true));
      if (visitor && !visitor.isOwn(form.get("csrf") ?? ""))
        throw new Forbidden("This form is not from this browser: reload the page and try again");
      const address = addressOf(deps, request, server);
      const isEverywhere = form.has("everywhere");
      // Nothing was signed out.
      if (!visitor && isEverywhere) return redirect(signInAddress(profilePath));
      if (visitor && isEverywhere) await signOutEverywhere(deps, { user: visitor.actor.user, address });
      else if (visitor) await signOutSession(deps, { session: visitor.session, address });
      return redirect(`${app}/signed_out${isEverywhere ? "?everywhere" : ""}`);
    })
    .get("/signed_out", ({ request }) => {
      const detail = new URL(request.url).searchParams.has("everywhere")
        ? "Your terminals and other browsers are signed out, too"
        : "Terminals and other browsers stay signed in";
      return messagePage({ title: "You are signed out", detail, link: [signInPath, "Sign in again"] });
    })
    .get(
      "/signed_in",
      site.read(async () => {
        const title = "You are signed in";
        return messagePage({
          title,
          detail: "Close this tab, and continue in the one where you were writing",
        });
      }),
    )
    .get("/", site.read(board))
    .get(
      "/streams",
      site.stream(async ({ visitor, request, server }) => {
        const body = await streams.openBoard(visitor.actor, withoutTimeout(server, request));
        return new Response(body, { headers: streamHeaders });
      }),
    )
    .get(
      "/report",
      site.read(async (visit) => {
        const fields = await reportFields(visit, (name) => visit.url.searchParams.get(name) ?? undefined);
        return reporting({ fields });
      }),
    )
    .post("/report", report)
    .get(
      "/search",
      site.read(async ({ visitor, url }) => {
        const q = url.searchParams.get("q")?.trim() ?? "";
        const found = q === "" ? [] : await searchAll(deps, visitor.actor, { q });
        return { title: `Search: ${q}`, here: "search", q, content: <Search q={q} found={found} /> };
      }),
    )
    .get(
      "/help",
      site.read(async () => {
        const title = "Keyboard help";
        const content = (
          <div class="narrow">
            <h1>{title}</h1>
            <Keys />
          </div>
        );
        return { title, content };
      }),
    )
    .get(
      "/tasks/:task_id",
      site.read(async ({ visitor, params }) => {
        const { incidentId } = await getTask(
          deps,
          visitor.actor,
          pathId(params.task_id, "There is no such task"),
        );
        return redirect(`${incidentPath(incidentId)}#tasks`);
      }),
    )
    .use(postmortemPages(site))
    .use(incidentPages(site, streams))
    .use(documentPages(site))
    .use(workPages(site))
    .use(profilePages(site))
    .use(accessPages(site))
    .use(adminPages(site))
    .use(numbersPages(site));
}
