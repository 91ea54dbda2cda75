import { Elysia } from "elysia";
import type { ComponentChildren } from "preact";
import { useContext } from "preact/hooks";
import { cancelRequest, decideRequest, reviewRequest } from "../core/access/decide.ts";
import { revokeLease } from "../core/access/end.ts";
import { getLease, type Lease, listLeases } from "../core/access/lease.ts";
import { type AccessRequest, getRequest, listRequests, requestAccess } from "../core/access/request.ts";
import { listRoles, type Role } from "../core/access/role.ts";
import type { Actor } from "../core/context.ts";
import { durationText } from "../platform/duration.ts";
import { InvalidInput, NotFound, noRoute } from "../platform/errors.ts";
import type { Deps } from "../server/deps.ts";
import { FormPage } from "./pages/forms.tsx";
import type { Field } from "./parts/form.tsx";
import { nameOf, Person } from "./parts/person.tsx";
import { Reader } from "./parts/reader.ts";
import { Text } from "./parts/text.tsx";
import { Clock } from "./parts/time.tsx";
import { app } from "./paths.ts";
import { type PageContent, pathId, type Site, type Visit } from "./site.tsx";
import type { Values } from "./values.ts";

const path = `${app}/access`;
const mostShown = 100;

/** What the page shows. */
interface AccessPage {
  roles: readonly Role[];
  /** Those that wait for a decision. */
  pending: readonly AccessRequest[];
  /** Approved by themselves, and not reviewed yet. */
  unreviewed: readonly AccessRequest[];
  /** The latest others. */
  earlier: readonly AccessRequest[];
  leases: readonly Lease[];
}

export async function readAccess(deps: Deps, actor: Actor): Promise<AccessPage> {
  const query = { limit: mostShown };
  const [roles, pending, unreviewed, all, leases] = await Promise.all([
    listRoles(deps, actor, query),
    listRequests(deps, actor, { ...query, state: "Pending" }),
    listRequests(deps, actor, { ...query, unreviewed: true }),
    listRequests(deps, actor, { limit: 20 }),
    listLeases(deps, actor, query),
  ]);
  return {
    roles: roles.items,
    pending: pending.items,
    unreviewed: unreviewed.items.filter(({ userName }) => userName !== actor.user),
    earlier: all.items.filter(({ state }) => state !== "Pending"),
    leases: leases.items.filter(({ finishedAt }) => finishedAt === null),
  };
}

/** What somebody does about a request, with a note or without. */
interface Decision {
  title: string;
  button: string;
  about?: string;
  takesNote: boolean;
  run(context: Deps, actor: Actor, decision: { id: number; note?: string }): Promise<unknown>;
}

const decisions: Record<string, Decision> = {
  approve: {
    title: "Approve access",
    button: "Approve",
    takesNote: true,
    run: (context, actor, decision) => decideRequest(context, actor, { ...decision, decision: "Approved" }),
  },
  deny: {
    title: "Deny access",
    button: "Deny",
    about: "An approval is withdrawn, which ends what was issued for it.",
    takesNote: true,
    run: (context, actor, decision) => decideRequest(context, actor, { ...decision, decision: "Denied" }),
  },
  cancel: {
    title: "Give up access",
    button: "Give up",
    takesNote: false,
    run: (context, actor, { id }) => cancelRequest(context, actor, id),
  },
  review: {
    title: "Review break-glass access",
    button: "Reviewed",
    takesNote: false,
    run: (context, actor, { id }) => reviewRequest(context, actor, id),
  },
};

const noteField: Field = { name: "note", label: "Reason", kind: "text", help: "The user who asked sees it" };

/** Access roles, requests and leases. Credentials themselves are issued in the terminal. */
export function accessPages(site: Site) {
  const { deps } = site;

  async function requestFields({ visitor, url }: Visit): Promise<Field[]> {
    const { items } = await listRoles(deps, visitor.actor, { limit: mostShown });
    const given = (name: string) => url.searchParams.get(name) ?? undefined;
    return [
      {
        name: "role",
        label: "Role",
        kind: "choice",
        isRequired: true,
        value: given("role"),
        choices: items.filter(({ disabledAt }) => disabledAt === null).map(({ slug }) => [slug, slug]),
      },
      { name: "reason", label: "Reason", kind: "text", isRequired: true, value: given("reason") },
      {
        name: "incident",
        label: "Incident",
        kind: "line",
        value: given("incident"),
        help: "Such as INC-44; some roles need one. The access ends with it",
      },
      {
        name: "minutes",
        label: "Minutes",
        kind: "line",
        help: "By default as long as is usual for the role",
      },
      { name: "break_glass", label: "Break glass: at once, and reviewed afterwards", kind: "check" },
    ];
  }

  const requesting = (fill: {
    fields: readonly Field[];
    trouble?: Parameters<typeof FormPage>[0]["trouble"];
  }) => ({
    title: "Request access",
    content: (
      <FormPage
        title="Request access"
        about="When it is approved, svc access get issues the credentials in your terminal."
        button="Request"
        action={`${path}/request`}
        back={path}
        {...fill}
      />
    ),
  });

  const request = site.submit(async (visit, values) => ({
    run: async (context) => {
      await requestAccess(context, visit.visitor.actor, {
        role: values.text("role"),
        reason: values.text("reason"),
        incident: values.given("incident"),
        duration: secondsOf(values),
        breakGlass: values.isTicked("break_glass"),
      });
      return path;
    },
    again: async (fill) => requesting(fill(await requestFields(visit))),
  }));

  async function decisionOf({ visitor, params }: Visit) {
    const { action = "" } = params;
    const decision = Object.hasOwn(decisions, action) ? decisions[action] : undefined;
    if (!decision) throw new NotFound(noRoute);
    const found = await getRequest(
      deps,
      visitor.actor,
      pathId(params.request_id, "There is no such access request"),
    );
    const { id, role, userName, reason, duration } = found;
    const page = {
      title: decision.title,
      about: decision.about,
      button: decision.button,
      action: `${path}/requests/${id}/${action}`,
      back: path,
    };
    const asked = (
      <>
        <p>
          <b>{role}</b> for <bdi>{nameOf(userName)}</bdi>, {lengthText(duration)}
        </p>
        <Text of={reason} />
      </>
    );
    return { decision, id, page, asked, fields: decision.takesNote ? [noteField] : [] };
  }

  async function decisionPage(visit: Visit): Promise<PageContent> {
    const { page, asked, fields } = await decisionOf(visit);
    return {
      title: page.title,
      content: (
        <FormPage {...page} fields={fields}>
          {asked}
        </FormPage>
      ),
    };
  }

  const decide = site.submit(async (visit, values) => {
    const { decision, id, page, asked, fields } = await decisionOf(visit);
    return {
      run: async (context) => {
        await decision.run(context, visit.visitor.actor, { id, note: values.given("note") });
        return path;
      },
      again: async (fill) => ({
        title: page.title,
        content: (
          <FormPage {...page} {...fill(fields)}>
            {asked}
          </FormPage>
        ),
      }),
    };
  });

  async function leaseOf({ visitor, params }: Visit) {
    const lease = await getLease(deps, visitor.actor, pathId(params.lease_id, "There is no such lease"));
    const page = {
      title: "Revoke access",
      about: `Ends ${lease.role} of ${nameOf(lease.userName)} at once, with what is connected.`,
      button: "Revoke",
      action: `${path}/leases/${lease.id}/revoke`,
      back: path,
    };
    return { lease, page };
  }

  async function leasePage(visit: Visit): Promise<PageContent> {
    const { page } = await leaseOf(visit);
    return { title: page.title, content: <FormPage {...page} fields={[]} /> };
  }

  const revoke = site.submit(async (visit) => {
    const { lease, page } = await leaseOf(visit);
    return {
      run: async (context) => {
        await revokeLease(context, visit.visitor.actor, lease.id);
        return path;
      },
      again: async (fill) => ({ title: page.title, content: <FormPage {...page} {...fill([])} /> }),
    };
  });

  return new Elysia({ name: "access pages", prefix: "/access" })
    .get(
      "/",
      site.read(async ({ visitor }) => ({
        title: "Access",
        here: "access",
        content: <Access page={await readAccess(deps, visitor.actor)} />,
      })),
    )
    .get(
      "/request",
      site.read(async (visit) => requesting({ fields: await requestFields(visit) })),
    )
    .post("/request", request)
    .get("/requests/:request_id/:action", site.read(decisionPage))
    .post("/requests/:request_id/:action", decide)
    .get("/leases/:lease_id/revoke", site.read(leasePage))
    .post("/leases/:lease_id/revoke", revoke);
}

/** @throws InvalidInput */
function secondsOf(values: Values): number | undefined {
  const minutes = values.given("minutes");
  if (minutes === undefined) return undefined;
  if (!/^[1-9]\d{0,5}$/.test(minutes))
    throw new InvalidInput("minutes", "Write a number of minutes, such as 45");
  return Number(minutes) * 60;
}

const lengthText = (seconds: number) => durationText(new Date(0), new Date(seconds * 1000));

function Access({ page: { roles, pending, unreviewed, earlier, leases } }: { page: AccessPage }) {
  const { user } = useContext(Reader);
  return (
    <>
      <div class="row head">
        <h1>Access</h1>
        <a class="button primary" href={`${path}/request`}>
          Request access
        </a>
      </div>
      <List title="Waiting for a decision" empty="No request waits." rows={pending}>
        {(request) => (
          <RequestRow key={request.id} request={request}>
            {request.userName === user ? (
              <Link to={`requests/${request.id}/cancel`}>Give up</Link>
            ) : (
              <>
                <Link to={`requests/${request.id}/approve`}>Approve</Link>{" "}
                <Link to={`requests/${request.id}/deny`}>Deny</Link>
              </>
            )}
          </RequestRow>
        )}
      </List>
      {unreviewed.length > 0 && (
        <List title="Break-glass access to review" empty="" rows={unreviewed}>
          {(request) => (
            <RequestRow key={request.id} request={request}>
              <Link to={`requests/${request.id}/review`}>Review</Link>
            </RequestRow>
          )}
        </List>
      )}
      <List title="In force" empty="No lease is in force." rows={leases}>
        {(lease) => <LeaseRow key={lease.id} lease={lease} />}
      </List>
      <List title="Roles that you may request" empty="None." rows={roles}>
        {({ slug, description, approval, defaultDuration, disabledAt }) => (
          <li key={slug}>
            <div>
              <p>
                <b>{slug}</b>{" "}
                <span class="quiet">
                  {lengthText(defaultDuration)},{" "}
                  {approval === "none" ? "without approval" : `approved by ${approval}`}
                </span>
              </p>
              <p class="quiet" dir="auto">
                {description}
              </p>
            </div>
            {disabledAt === null ? (
              <Link to={`request?role=${encodeURIComponent(slug)}`}>Request</Link>
            ) : (
              <span class="quiet">disabled</span>
            )}
          </li>
        )}
      </List>
      {earlier.length > 0 && (
        <List title="Earlier" empty="" rows={earlier}>
          {(request) => (
            <RequestRow key={request.id} request={request}>
              {request.state === "Approved" && request.userName === user ? (
                <Link to={`requests/${request.id}/cancel`}>Give up</Link>
              ) : null}
            </RequestRow>
          )}
        </List>
      )}
    </>
  );
}

const Link = ({ to, children }: { to: string; children: string }) => <a href={`${path}/${to}`}>{children}</a>;

function List<Row>({
  title,
  empty,
  rows,
  children,
}: {
  title: string;
  empty: string;
  rows: readonly Row[];
  children: (row: Row) => ComponentChildren;
}) {
  return (
    <section class="list">
      <h2>{title}</h2>
      {rows.length === 0 ? <p class="quiet">{empty}</p> : <ul>{rows.map(children)}</ul>}
    </section>
  );
}

/** A request, with what the reader can do about it. */
export function RequestRow({ request, children }: { request: AccessRequest; children: ComponentChildren }) {
  const {
    role,
    userName,
    reason,
    incidentName,
    duration,
    createdAt,
    state,
    approvedBy,
    approvalsNeeded,
    note,
  } = request;
  return (
    <li>
      <div>
        <p>
          <Person email={userName} /> <b>{role}</b>{" "}
          <span class="quiet">
            {lengthText(duration)}
            {incidentName && `, ${incidentName}`}, asked <Clock at={createdAt} />, {state.toLowerCase()}
            {state === "Pending" && approvalsNeeded > 1 && ` (${approvedBy.length} of ${approvalsNeeded})`}
          </span>
        </p>
        <Text of={reason} />
        {note && (
          <p class="quiet" dir="auto">
            {note}
          </p>
        )}
      </div>
      <span class="does">{children}</span>
    </li>
  );
}

export function LeaseRow({
  lease: { id, role, userName, state, expiresAt, incidentName },
}: {
  lease: Lease;
}) {
  return (
    <li>
      <div>
        <Person email={userName} /> <b>{role}</b>{" "}
        <span class="quiet">
          {state === "Active" ? "until" : `${state.toLowerCase()}, ends`} <Clock at={expiresAt} />
          {incidentName && `, ${incidentName}`}
        </span>
      </div>
      <Link to={`leases/${id}/revoke`}>Revoke</Link>
    </li>
  );
}
