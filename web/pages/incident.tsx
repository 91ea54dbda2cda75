import type { ComponentChildren, VNode } from "preact";
import { useContext } from "preact/hooks";
import type { Participant } from "../../core/incident/participant/participant.ts";
import type { Task } from "../../core/incident/task/task.ts";
import { folded } from "../../core/incident/timeline/fold.ts";
import { actions, transitions } from "../incident/actions.ts";
import { type IncidentPage, type View, views } from "../incident/read.ts";
import { Entry } from "../parts/entry.tsx";
import { FormKeys } from "../parts/form.tsx";
import { nameOf, Person } from "../parts/person.tsx";
import { Reader } from "../parts/reader.ts";
import { Lock, Priority, Status } from "../parts/status.tsx";
import { Text } from "../parts/text.tsx";
import { Ago, Clock } from "../parts/time.tsx";
import { app, documentPath, incidentPath } from "../paths.ts";

const exportFormats = [
  ["md", "Markdown"],
  ["html", "HTML"],
  ["json", "JSON"],
] as const;

/** An incident: what happens in it, and what one can do. */
export function Incident({ page, bars }: { page: IncidentPage; bars: number }) {
  const { incident } = page;
  const path = incidentPath(incident.id);
  return (
    <>
      <Head page={page} path={path} bars={bars} />
      <div class="two">
        <div>
          {incident.description !== "" && <Text of={incident.description} />}
          {incident.resolution && (
            <section class="resolution">
              <h2>Resolution</h2>
              <Text of={incident.resolution} />
            </section>
          )}
          <Composer path={path} />
          <Timeline page={page} path={path} />
        </div>
        <aside>
          <People page={page} path={path} />
          <Tasks tasks={page.tasks} path={path} />
          <Affected page={page} path={path} />
          <Access page={page} />
          <Documents page={page} path={path} />
          <Links page={page} path={path} />
          <Failed page={page} path={path} />
          <section>
            <h2>Cost</h2>
            <p>
              {incident.cost.toLocaleString("en")}
              {incident.status !== "Closed" && <span class="quiet"> so far</span>}
            </p>
          </section>
        </aside>
      </div>
    </>
  );
}

function Head({ page, path, bars }: { page: IncidentPage; path: string; bars: number }) {
  const { incident, mine } = page;
  const { user, admin } = useContext(Reader);
  const isCommander = incident.commander?.email === user;
  return (
    <>
      <div class="row head">
        <span class="name">{incident.name}</span>
        <h1 dir="auto">{incident.title}</h1>
        <div class="row actions">
          {!mine && <Do path={path} action="join" />}
          {!isCommander && incident.status !== "Closed" && (
            <Do path={path} action="command" about={{ from: String(incident.commander?.id ?? "") }} />
          )}
          {transitions[incident.status].map((action) =>
            action === "close" ? (
              <a key={action} class="button" href={`${path}/close`}>
                Close
              </a>
            ) : (
              <Do key={action} path={path} action={action} />
            ),
          )}
          {incident.status === "Closed" && (
            <a class="button primary" href={`${path}/postmortem`}>
              Post-mortem
            </a>
          )}
          <details class="more">
            <summary class="button">More</summary>
            <div class="menu">
              <a href={`${path}/edit`}>Edit</a>
              <a href={`${path}/role`}>Give a role</a>
              <a href={`${path}/renounce`}>Give up a role</a>
              <a href={`${path}/link`}>Link with another incident</a>
              {incident.status !== "Closed" && <a href={`${path}/postmortem`}>Post-mortem</a>}
              {exportFormats.map(([format, label]) => (
                <a key={format} href={`${path}/export/${format}`} download>
                  Export as {label}
                </a>
              ))}
              {mine && <a href={`${path}/leave`}>Leave</a>}
              {admin && <a href={`${path}/delete`}>Delete</a>}
            </div>
          </details>
        </div>
      </div>
      <p class="meta">
        <Status of={incident.status} />
        <Lock visibility={incident.visibility} />
        <Priority name={incident.incidentPriority.name} bars={bars} />
        <span>{incident.incidentType.name}</span>
        <span>
          Commander <b>{incident.commander ? <bdi>{incident.commander.name}</bdi> : "nobody yet"}</b>
        </span>
        <span>
          reported{" "}
          <b>
            <Clock at={incident.reportedAt} />
          </b>
          , <Ago at={incident.reportedAt} suffix=" ago" />
        </span>
        {incident.impactStartedAt && (
          <span>
            impact from <Clock at={incident.impactStartedAt} />
            {incident.impactEndedAt && (
              <>
                {" "}
                to <Clock at={incident.impactEndedAt} />
              </>
            )}
          </span>
        )}
        {incident.closedAt && (
          <span>
            closed <Clock at={incident.closedAt} />
          </span>
        )}
      </p>
    </>
  );
}

/** A button that does something at once. */
function Do({ path, action, about = {} }: { path: string; action: string; about?: Record<string, string> }) {
  return (
    <form method="post" action={`${path}/${action}`}>
      <FormKeys />
      {Object.entries(about).map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
      <button type="submit">{actions[action]!.button}</button>
    </form>
  );
}

function Composer({ path }: { path: string }) {
  return (
    <form class="say" method="post" action={`${path}/note`} id="say">
      <FormKeys />
      <textarea
        id="text"
        name="text"
        dir="auto"
        rows={2}
        required
        aria-label="Write"
        placeholder="A note for the timeline, or a message to everybody in the incident"
      />
      <div class="row">
        <button type="submit" class="primary">
          Note
        </button>
        <button type="submit" formaction={`${path}/say`}>
          Message
        </button>
        <a class="button" href={`${path}/status-report`}>
          Status report
        </a>
        <a class="button" href={`${path}/task`}>
          Task
        </a>
      </div>
    </form>
  );
}

const viewNames: Record<View, string> = {
  timeline: "Timeline",
  reports: "Reports",
  notes: "Notes",
  messages: "Messages",
  everything: "Everything",
};

function Timeline({ page, path }: { page: IncidentPage; path: string }) {
  const { view, events, reports, next, messages, isOlder, at } = page;
  const address = (of: View, more: Record<string, string> = {}) => {
    const query = new URLSearchParams(of === "timeline" ? more : { show: of, ...more });
    return query.size === 0 ? path : `${path}?${query}`;
  };
  const chronological = events.toReversed();
  const entries =
    view === "everything" ? chronological.map((event) => ({ event, more: [] })) : folded(chronological);
  return (
    <section aria-label={viewNames[view]}>
      <nav class="tabs" aria-label="Timeline">
        {views.map((one) => (
          <a key={one} href={address(one)} aria-current={one === view ? "page" : undefined}>
            {viewNames[one]}
          </a>
        ))}
      </nav>
      {isOlder && (
        <p>
          <a href={address(view)}>To the newest entries</a>
        </p>
      )}
      {messages ? (
        <Messages messages={messages} />
      ) : (
        <ol class="timeline" reversed aria-live="polite" aria-relevant="additions">
          {entries.toReversed().map((entry) => (
            <Entry
              key={entry.event.id}
              of={entry}
              report={reports.get(Number(entry.event.data.report_id))}
              path={path}
            />
          ))}
        </ol>
      )}
      {events.length + (messages?.length ?? 0) === 0 && <p class="empty">Nothing yet.</p>}
      {next && (
        <p>
          <a href={address(view, { ...(at && { at: String(at) }), cursor: next })}>Older</a>
        </p>
      )}
    </section>
  );
}

function Messages({ messages }: { messages: NonNullable<IncidentPage["messages"]> }) {
  const { user } = useContext(Reader);
  return (
    <ol class="timeline" reversed aria-live="polite" aria-relevant="additions">
      {messages.map(({ id, at, author, recipient, text, withdrawnAt, redactedAt }) => (
        <li key={id} id={`message-${id}`}>
          <a class="when" href={`#message-${id}`} data-row>
            <Clock at={at} />
          </a>
          <div>
            <p class="by">
              <b>
                <bdi>{author ? (author.email === user ? "You" : author.name) : "svc"}</bdi>
              </b>
              {recipient && (
                <span class="quiet">
                  {" "}
                  to <bdi>{recipient.email === user ? "you" : recipient.name}</bdi> alone
                </span>
              )}
            </p>
            {redactedAt || withdrawnAt ? (
              <p class="quiet">{redactedAt ? "Redacted" : "Withdrawn"}</p>
            ) : (
              <Text of={text} />
            )}
          </div>
        </li>
      ))}
    </ol>
  );
}

function Section({
  id,
  title,
  children,
}: {
  id: string;
  title: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{title}</h2>
      {children}
    </section>
  );
}

function People({ page: { people, areMorePeople, incident }, path }: { page: IncidentPage; path: string }) {
  const here = people.filter(isActive);
  const proposed = incident.individuals.filter(
    ({ email }) => !here.some(({ individual }) => individual.email === email),
  );
  return (
    <Section id="people" title="People">
      <ul>
        {here.map(({ id, individual, roles }) => (
          <li key={id}>
            <Person email={individual.email} name={individual.name} />
            <span class="quiet">{rolesText(roles)}</span>
          </li>
        ))}
      </ul>
      {areMorePeople && <p class="quiet">And more people.</p>}
      {proposed.length + incident.teams.length > 0 && (
        <p class="quiet">
          Proposed:{" "}
          <Listed
            items={[
              ...proposed.slice(0, 5).map(({ individualId, name, email }) => (
                <a key={individualId} href={`${path}/people?email=${encodeURIComponent(email)}`}>
                  {name}
                </a>
              )),
              ...incident.teams.slice(0, 5).map(({ teamId, name }) => (
                <span key={teamId}>
                  team <bdi>{name}</bdi>
                </span>
              )),
            ]}
          />
        </p>
      )}
      <p>
        <a href={`${path}/people`}>Add people</a>, <a href={`${path}/say`}>write to one</a>
      </p>
    </Section>
  );
}

/** With commas between them. */
const Listed = ({ items }: { items: readonly VNode[] }) =>
  items.flatMap((item, at) => (at > 0 ? [", ", item] : [item]));

const isActive = ({ leftAt }: Participant) => leftAt === null;

/** Those of now, without the one that everybody has. */
function rolesText(roles: Participant["roles"]): string {
  const now = roles.filter(({ renouncedAt }) => renouncedAt === null).map(({ role }) => role);
  return now.filter((role) => role !== "participant" || now.length === 1).join(", ");
}

const openFirst = (a: Task, b: Task) => Number(a.status !== "Open") - Number(b.status !== "Open");

function Tasks({ tasks, path }: { tasks: readonly Task[]; path: string }) {
  const { now, admin } = useContext(Reader);
  const open = tasks.filter(({ status }) => status === "Open").length;
  return (
    <Section id="tasks" title={tasks.length === 0 ? "Tasks" : `Tasks, ${open} of ${tasks.length} open`}>
      <ul>
        {tasks.toSorted(openFirst).map(({ id, description, status, assignees, resolveBy }) => (
          <li key={id}>
            <form method="post" action={`${path}/${status === "Open" ? "task-done" : "task-reopen"}`}>
              <FormKeys />
              <input type="hidden" name="task" value={id} />
              <button
                type="submit"
                class={status === "Open" ? "box" : "box done"}
                aria-label={`${status === "Open" ? "Resolve" : "Reopen"}: ${description}`}
              />
            </form>
            <a
              href={`${path}/task-edit?task=${id}`}
              class={status === "Open" ? undefined : "struck"}
              dir="auto"
            >
              {description}
            </a>
            <span class={status === "Open" && resolveBy < now ? "late" : "quiet"}>
              {assignees[0] ? nameOf(assignees[0].email) : <Clock at={resolveBy} />}
            </span>
            {admin && (
              <a
                class="quiet"
                href={`${path}/task-delete?task=${id}`}
                aria-label={`Delete the task: ${description}`}
              >
                ✕
              </a>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Affected({ page: { affected }, path }: { page: IncidentPage; path: string }) {
  const all = [...affected.services, ...affected.applications];
  return (
    <Section id="affected" title="Affected">
      {all.length === 0 ? (
        <p class="quiet">Nothing of the catalog.</p>
      ) : (
        <ul>
          {all.map(({ id, name }) => (
            <li key={`${id}-${name}`}>{name}</li>
          ))}
        </ul>
      )}
      <p>
        <a href={`${path}/affected`}>Change</a>
      </p>
    </Section>
  );
}

function Access({ page: { leases, incident } }: { page: IncidentPage }) {
  return (
    <Section id="access" title="Access">
      <ul>
        {leases.map(({ id, role, userName, expiresAt }) => (
          <li key={id}>
            <span>{role}</span>
            <span class="quiet">
              <bdi>{nameOf(userName)}</bdi> until <Clock at={expiresAt} />
            </span>
          </li>
        ))}
      </ul>
      {incident.status !== "Closed" && (
        <p>
          <a href={`${app}/access/request?incident=${incident.name}`}>Request access</a>
        </p>
      )}
    </Section>
  );
}

function Documents({ page: { documents, incident }, path }: { page: IncidentPage; path: string }) {
  const proposed = incident.documents.filter(
    ({ documentId }) => !documents.some(({ id }) => id === documentId),
  );
  return (
    <Section id="documents" title="Documents">
      <ul>
        {documents.map(({ id, name }) => (
          <li key={id}>
            <a href={documentPath(id)}>{name}</a>
          </li>
        ))}
        {proposed.map(({ documentId, name }) => (
          <li key={documentId}>
            <a href={documentPath(documentId)}>{name}</a>
            <span class="quiet">proposed</span>
          </li>
        ))}
      </ul>
      <p>
        <a href={`${path}/document`}>Add a document</a>
      </p>
    </Section>
  );
}

function Reference({ name, weblink }: { name: string; weblink: string | null }) {
  // A plugin's address may have any scheme.
  return weblink && /^https?:/.test(weblink) ? (
    <a href={weblink} rel="noreferrer">
      {name}
    </a>
  ) : (
    <span>{name}</span>
  );
}

const sides = { related: "related", duplicate_of: "duplicate of", duplicated_by: "duplicated by" };

function Links({ page: { links, incident }, path }: { page: IncidentPage; path: string }) {
  const rooms = incident.conversations.filter(({ weblink }) => weblink !== null);
  if (links.length + rooms.length === 0) return null;
  return (
    <Section id="links" title="Links">
      <ul>
        {rooms.map(({ pluginSlug, weblink, archivedAt }) => (
          <li key={pluginSlug}>
            <Reference name={`Conversation (${pluginSlug})`} weblink={weblink} />
            {archivedAt && <span class="quiet">archived</span>}
          </li>
        ))}
        {links.map(({ id, kind, incident: other }) => (
          <li key={id}>
            <span class="quiet">{sides[kind]}</span>
            <a href={incidentPath(other.id)}>
              {other.name} <bdi>{other.title}</bdi>
            </a>
            <a
              class="quiet"
              href={`${path}/unlink?link=${id}`}
              aria-label={`Remove the link with ${other.name}`}
            >
              ✕
            </a>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** Steps that did not work: nobody would look for them. */
function Failed({ page: { incident }, path }: { page: IncidentPage; path: string }) {
  const failed = incident.steps.filter(({ state, error }) => state === "Failed" || error !== null);
  if (failed.length === 0) return null;
  return (
    <Section id="steps" title="Did not work">
      <ul>
        {failed.map(({ step, error, state }) => (
          <li key={step}>
            <span>
              {step}
              <br />
              <small class="quiet">{error}</small>
            </span>
            {state === "Failed" && <Do path={path} action="retry" about={{ step }} />}
          </li>
        ))}
      </ul>
    </Section>
  );
}
