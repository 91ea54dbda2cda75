import { Elysia } from "elysia";
import { useContext } from "preact/hooks";
import { draftPostmortem, getPostmortem, type Postmortem } from "../core/incident/postmortem/postmortem.ts";
import { noSuchIncident } from "../core/incident/visibility/see.ts";
import { durationText } from "../platform/duration.ts";
import { Alert, Crumb, type Trouble } from "./pages/forms.tsx";
import { FormKeys } from "./parts/form.tsx";
import { Markdown } from "./parts/markdown.tsx";
import { Reader } from "./parts/reader.ts";
import { Clock } from "./parts/time.tsx";
import { app, documentPath, incidentPath } from "./paths.ts";
import { idIn, type PageContent, type Site, type Visit } from "./site.tsx";

/** Of what is new. The rest follows when these are added. */
const mostShown = 200;

/** The post-mortem of an incident: the draft, and what its writers may look at next. */
export function postmortemPages(site: Site) {
  const { deps } = site;

  const idOf = ({ params }: Visit): number => {
    const id = idIn(params.incident_id);
    if (id === undefined) throw noSuchIncident();
    return id;
  };

  async function page(visit: Visit, trouble?: Trouble): Promise<PageContent> {
    const postmortem = await getPostmortem(deps, visit.visitor.actor, idOf(visit));
    return {
      title: `Post-mortem of ${postmortem.incident.name}`,
      content: <PostmortemPage postmortem={postmortem} trouble={trouble} />,
    };
  }

  const draft = site.submit(async (visit, values) => {
    const incidentId = idOf(visit);
    const isFirst = values.isTicked("first");
    const chosen = { entries: values.ticked("entry"), sections: values.isTicked("sections") };
    return {
      run: async (context) => {
        const wanted = { incidentId, ...(!isFirst && chosen) };
        const { documentId } = await draftPostmortem(context, visit.visitor.actor, wanted);
        return isFirst ? documentPath(documentId!) : `${incidentPath(incidentId)}/postmortem`;
      },
      // A plugin writes the text, which may take a while.
      isVersioned: true,
      again: (fill) => page(visit, fill([]).trouble),
    };
  });

  return new Elysia({ name: "post-mortem pages", prefix: "/incidents/:incident_id/postmortem" })
    .get(
      "/",
      site.read((visit) => page(visit)),
    )
    .post("/", draft);
}

interface Shown {
  postmortem: Postmortem;
  trouble?: Trouble;
}

function PostmortemPage({ postmortem, trouble }: Shown) {
  const { incident, documentId, text } = postmortem;
  const path = `${incidentPath(incident.id)}/postmortem`;
  const isEmptied = documentId !== null && text.trim() === "";
  return (
    <article>
      <Crumb of={incident} />
      <div class="row head">
        <h1>Post-mortem</h1>
        {(documentId === null || isEmptied) && (
          <form method="post" action={path}>
            <FormKeys />
            <input type="hidden" name="first" value="on" />
            <button type="submit" class="primary">
              Draft it
            </button>
          </form>
        )}
        {documentId !== null && (
          <>
            <a class="button" href={documentPath(documentId)}>
              Read
            </a>
            <a class={isEmptied ? "button" : "button primary"} href={`${documentPath(documentId)}/edit`}>
              Edit
            </a>
          </>
        )}
      </div>
      <Alert trouble={trouble} />
      {documentId === null ? (
        <>
          <p class="quiet">
            This is what the draft will be: a document of the incident, which everybody who may read the
            incident can edit. Drafting it again adds what is new, and changes nothing that somebody has
            written.
            {incident.status !== "Closed" &&
              " The table and the summary stay as they are now: draft it after the closing, so that they have its times and the resolution."}
          </p>
          <Gaps of={postmortem} />
          <Markdown text={text} />
        </>
      ) : isEmptied ? (
        <>
          <p class="quiet">
            Its text is empty. The draft has everything again, also what was left out before.
          </p>
          <Gaps of={postmortem} />
        </>
      ) : (
        <Review postmortem={postmortem} path={path} />
      )}
    </article>
  );
}

/** What the text does not have yet. */
function Review({ postmortem, path }: Shown & { path: string }) {
  const { news, empty, outdated, incident } = postmortem;
  // By their ids: what is newer than all that was added is proposed again.
  const earliest = news.happenings.toSorted((a, b) => a.eventId - b.eventId).slice(0, mostShown);
  const isNew = news.happenings.length + news.tasks.length + news.sections.length > 0;
  return (
    <>
      {empty.length > 0 && (
        <section class="list">
          <h2>Nobody has written yet</h2>
          <p>{empty.join(", ")}</p>
        </section>
      )}
      {outdated.length > 0 && (
        <section class="list">
          <h2>Changed since</h2>
          <p class="quiet">
            The text links to these entries, and may still have their earlier words. An entry leaves this list
            when the text no longer links to it, and a corrected one also when each link to it begins a line
            that has exactly its new words.
          </p>
          <ul>
            {outdated.map(({ eventId, change, who, at }) => (
              <li key={eventId}>
                <a href={`${incidentPath(incident.id)}?at=${eventId}#event-${eventId}`}>Entry e{eventId}</a>
                <span>
                  {change} by {who}, <Clock at={at} />
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {isNew && (
        <section class="list">
          <h2>Not in it yet</h2>
          <p class="quiet">An entry that you leave out is not proposed again once a newer one is added.</p>
          <form method="post" action={path}>
            <FormKeys />
            <ul>
              {earliest.map(({ eventId, at, who, text }) => (
                <li key={eventId}>
                  <label class="check">
                    <input type="checkbox" name={`entry-${eventId}`} checked />{" "}
                    <span>
                      <Clock at={at} /> <b>{who}</b> <bdi>{text.slice(0, 300)}</bdi>
                    </span>
                  </label>
                </li>
              ))}
              {news.tasks.map(({ id, description }) => (
                <li key={id}>
                  <span>
                    Task: <a href={`${app}/tasks/${id}`}>{description}</a>
                  </span>
                </li>
              ))}
              {news.sections.length > 0 && (
                <li>
                  <label class="check">
                    <input type="checkbox" name="sections" />{" "}
                    <span>Sections: {news.sections.join(", ")}</span>
                  </label>
                </li>
              )}
            </ul>
            <button type="submit">Add to the post-mortem</button>
          </form>
        </section>
      )}
      <Gaps of={postmortem} />
      {!isNew && <p class="empty">Nothing new since the last draft.</p>}
    </>
  );
}

function Gaps({ of: { gaps, incident } }: { of: Postmortem }) {
  const { timeZone } = useContext(Reader);
  if (gaps.length === 0) return null;
  return (
    <section class="list">
      <h2>Gaps in the timeline</h2>
      <p class="quiet">
        Nothing was written down in these times. Somebody may remember: a note can have the time at which it
        happened.
      </p>
      <ul>
        {gaps.map(({ from, to }) => (
          <li key={from.getTime()}>
            <span>
              <Clock at={from} /> to <Clock at={to} />, {durationText(from, to)}
            </span>
            <a href={`${incidentPath(incident.id)}/note`} title={`Times are in ${timeZone}`}>
              Add a note
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
