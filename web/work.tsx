import { Elysia } from "elysia";
import { useContext } from "preact/hooks";
import { type ClientCertificate, listClientCertificates } from "../core/auth/certificate/certificate.ts";
import { listOpened } from "../core/auth/challenge/open.ts";
import type { Challenge } from "../core/auth/challenge/state.ts";
import { type BoardFacts, boardFacts } from "../core/incident/board/board.ts";
import type { Incident } from "../core/incident/incident/incident.ts";
import { listIncidents } from "../core/incident/incident/list.ts";
import { listTasks } from "../core/incident/task/list.ts";
import type { Task } from "../core/incident/task/task.ts";
import { addressOf } from "../server/deps.ts";
import { LeaseRow, readAccess, RequestRow } from "./access.tsx";
import { Reader } from "./parts/reader.ts";
import { Status } from "./parts/status.tsx";
import { Ago, Clock } from "./parts/time.tsx";
import { app, incidentPath } from "./paths.ts";
import type { PageContent, Site, Visit } from "./site.tsx";

type Access = Awaited<ReturnType<typeof readAccess>>;

interface WorkPage {
  /** Terminals that wait for an approval in this browser. */
  signIns: readonly Challenge[];
  /** Those that the reader takes part in, open. */
  incidents: readonly Incident[];
  facts: ReadonlyMap<number, BoardFacts>;
  tasks: readonly Task[];
  access: Access;
  /** Incidents that the reader takes part in, and that nobody has written a post-mortem of. */
  due: readonly Incident[];
  certificates: readonly ClientCertificate[];
}

/** What the reader has to do, and what they hold. */
export function workPages(site: Site) {
  const { deps } = site;

  async function read({ visitor, request, server }: Visit): Promise<PageContent> {
    const { actor, session } = visitor;
    const { user } = actor;
    const limit = 100;
    const address = addressOf(deps, request, server);
    const [signIns, { items: incidents }, { items: tasks }, access, { items: due }, { items: certificates }] =
      await Promise.all([
        listOpened(deps, { session, address }),
        listIncidents(deps, actor, { statuses: ["Active", "Stable"], participant: user, limit }),
        listTasks(deps, actor, { assignee: user, status: "Open", sort: "resolve_by", limit }),
        readAccess(deps, actor),
        listIncidents(deps, actor, { participant: user, postmortemDue: true, limit }),
        listClientCertificates(deps, actor, { user, valid: true, limit }),
      ]);
    const facts = await boardFacts(
      deps,
      actor,
      incidents.map(({ id }) => id),
    );
    const page = { signIns, incidents, facts, tasks, access, due, certificates };
    return { title: "My work", here: "work", stream: `${app}/streams`, content: <Work page={page} /> };
  }

  return new Elysia({ name: "my work" }).get("/work", site.read(read));
}

function Work({ page: { signIns, incidents, facts, tasks, access, due, certificates } }: { page: WorkPage }) {
  const { user, now } = useContext(Reader);
  const isCommanded = ({ commander }: Incident) => commander?.email === user;
  const isLate = ({ id, status }: Incident) => {
    const due = facts.get(id)?.reportDueAt;
    return status === "Active" && due !== undefined && due < now;
  };
  const toApprove = access.pending.filter(({ userName }) => userName !== user);
  const leases = access.leases.filter(({ userName }) => userName === user);
  return (
    <>
      <h1>My work</h1>
      {signIns.length > 0 && (
        <section class="list">
          <h2>Terminals that ask to sign in as you</h2>
          <ul>
            {signIns.map(({ id, client, requestAddress, createdAt }) => (
              <li key={id}>
                <div>
                  <bdi>{client}</bdi>{" "}
                  <span class="quiet">
                    from {requestAddress}, <Clock at={createdAt} />
                  </span>
                </div>
                <a href={`/approve/${id}`} data-row>
                  Approve or deny
                </a>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section class="list">
        <h2>Incidents that you take part in</h2>
        {incidents.length === 0 ? (
          <p class="quiet">None that is open.</p>
        ) : (
          <ul>
            {incidents
              .toSorted((a, b) => Number(isCommanded(b)) - Number(isCommanded(a)))
              .map((one) => (
                <li key={one.id}>
                  <div>
                    <Status of={one.status} />{" "}
                    <a href={incidentPath(one.id)} data-row dir="auto">
                      {one.title}
                    </a>{" "}
                    <span class="name">{one.name}</span>{" "}
                    <span class="quiet">{facts.get(one.id)?.roles.join(", ")}</span>
                  </div>
                  {isCommanded(one) && isLate(one) ? (
                    <a class="late" href={`${incidentPath(one.id)}/status-report`}>
                      Status report overdue
                    </a>
                  ) : (
                    <span class="quiet">
                      <Ago at={one.reportedAt} />
                    </span>
                  )}
                </li>
              ))}
          </ul>
        )}
      </section>
      <section class="list">
        <h2>Your tasks</h2>
        {tasks.length === 0 ? (
          <p class="quiet">None that is open.</p>
        ) : (
          <ul>
            {tasks.map(({ id, description, incidentId, resolveBy }) => (
              <li key={id}>
                <a href={`${incidentPath(incidentId)}#tasks`} data-row dir="auto">
                  {description}
                </a>
                <span class={resolveBy < now ? "late" : "quiet"}>
                  <Clock at={resolveBy} />
                </span>
              </li>
            ))}
          </ul>
        )}
      </section>
      {toApprove.length > 0 && (
        <section class="list">
          <h2>Access requests to decide</h2>
          <ul>
            {toApprove.map((request) => (
              <RequestRow key={request.id} request={request}>
                <a href={`${app}/access/requests/${request.id}/approve`}>Approve</a>{" "}
                <a href={`${app}/access/requests/${request.id}/deny`}>Deny</a>
              </RequestRow>
            ))}
          </ul>
        </section>
      )}
      {leases.length > 0 && (
        <section class="list">
          <h2>Your access</h2>
          <ul>
            {leases.map((lease) => (
              <LeaseRow key={lease.id} lease={lease} />
            ))}
          </ul>
        </section>
      )}
      {due.length > 0 && (
        <section class="list">
          <h2>Post-mortems to write</h2>
          <ul>
            {due.map(({ id, name, title, closedAt }) => (
              <li key={id}>
                <div>
                  <a href={`${incidentPath(id)}/postmortem`} data-row dir="auto">
                    {title}
                  </a>{" "}
                  <span class="name">{name}</span>
                </div>
                <span class="quiet">closed {closedAt && <Ago at={closedAt} suffix=" ago" />}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {certificates.length > 0 && (
        <section class="list">
          <h2>Your client certificates</h2>
          <ul>
            {certificates.map(({ sha256, expiresAt }) => (
              <li key={sha256}>
                <span class="name">{sha256.slice(0, 12)}…</span>
                <span class="quiet">
                  valid until <Clock at={expiresAt} />, renewed while it is used
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}
