import { Elysia } from "elysia";
import { endSignIn, endSignIns, listSignIns, type SignIn } from "../../core/auth/session/sign_ins.ts";
import { parseUserName } from "../../core/auth/user/field.ts";
import { InvalidInput } from "../../platform/errors.ts";
import { Alert, FormPage, type Trouble } from "../pages/forms.tsx";
import { Clock } from "../parts/time.tsx";
import { adminPath } from "../paths.ts";
import type { PageContent, Site, Visit } from "../site.tsx";
import { Values } from "../values.ts";
import { admins, adminsSubmit, Crumb, RowForm, Table } from "./shared.tsx";

const path = `${adminPath}/sign-ins`;
const pathOf = (query: Record<string, string | undefined>, rest = "") => {
  const given = Object.entries(query).filter((one): one is [string, string] => one[1] !== undefined);
  return `${path}${rest}${given.length > 0 ? `?${new URLSearchParams(given)}` : ""}`;
};

/** Without `found` if the filter was refused. */
interface Shown {
  trouble?: Trouble;
  user?: string;
  found?: Awaited<ReturnType<typeof listSignIns>>;
}

/** What users are signed in with: an admin ends one, or all of a user. */
export function signInPages(site: Site) {
  const { deps } = site;
  const typedIn = ({ url }: Visit) => new Values(new Map(url.searchParams)).given("user");
  /** @throws InvalidInput */
  const userOf = (visit: Visit) => {
    const name = typedIn(visit);
    return name === undefined ? undefined : parseUserName("user", name, deps.config.domain);
  };

  async function view(visit: Visit, trouble?: Trouble): Promise<PageContent> {
    try {
      return await listed(visit, trouble);
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      return page({ trouble: error, user: typedIn(visit) });
    }
  }

  async function listed(visit: Visit, trouble?: Trouble): Promise<PageContent> {
    const [user, cursor] = [userOf(visit), visit.url.searchParams.get("cursor") ?? undefined];
    return page({ trouble, user, found: await listSignIns(deps, visit.visitor.actor, { user, cursor }) });
  }

  const page = ({ trouble, user, found }: Shown): PageContent => ({
    title: "Sign-ins",
    content: (
      <>
        <Crumb />
        <div class="row head">
          <h1>Sign-ins</h1>
          {user !== undefined && found && found.items.length > 0 && (
            <a class="button" href={pathOf({ user }, "/end")}>
              End all of <bdi>{user}</bdi>
            </a>
          )}
        </div>
        <Alert trouble={trouble} />
        <form class="row filters bar" action={path}>
          <input name="user" aria-label="User" placeholder="User" value={user} dir="auto" />
          <button type="submit">Filter</button>
        </form>
        {found && <SignIns items={found.items} action={pathOf({ user })} hasUser />}
        {found?.next_cursor && (
          <p>
            <a href={pathOf({ user, cursor: found.next_cursor })}>Older</a>
          </p>
        )}
      </>
    ),
  });

  const question = (user: string) => ({
    title: "End all sign-ins",
    about: `Ends all sign-ins of ${user}: browsers, access tokens and certificates of svc, with the access that was obtained there. Certificates of your organisation and the sign-in at the provider stay.`,
    button: "End all",
    isDangerous: true,
    action: `${path}/end`,
    back: pathOf({ user }),
    fields: [{ name: "user", label: "", kind: "hidden" as const, value: user }],
  });

  const end = adminsSubmit(site, async (visit, values, address) => {
    const back = pathOf({ user: userOf(visit) });
    const certificate = values.given("certificate");
    if (certificate !== undefined)
      return { ...certificateQuestion({ id: certificate, action: back, back }), here: "admin" };
    return {
      run: async (context) => {
        await endSignIn(context, visit.visitor.actor, values.text("sign_in"), address);
        return back;
      },
      again: async (fill) => ({ ...(await view(visit, fill([]).trouble)), here: "admin" }),
    };
  });

  const endAll = adminsSubmit(site, async (visit, values, address) => {
    const user = parseUserName("user", values.text("user"), deps.config.domain);
    const page = question(user);
    return {
      run: async (context) => {
        await endSignIns(context, visit.visitor.actor, user, address);
        return pathOf({ user });
      },
      again: async (fill) => ({
        title: page.title,
        here: "admin",
        content: <FormPage {...page} {...fill(page.fields)} />,
      }),
    };
  });

  return new Elysia({ name: "sign-in pages", prefix: "/sign-ins" })
    .get(
      "/",
      admins(site, (visit) => view(visit)),
    )
    .post("/", end)
    .get(
      "/end",
      admins(site, async (visit) => {
        const page = question(userOf(visit) ?? visit.visitor.actor.user);
        return { title: page.title, content: <FormPage {...page} /> };
      }),
    )
    .post("/end", endAll);
}

/** Before the end of a certificate of an organisation, because a new sign-in does not bring it back. */
export function certificateQuestion({
  id,
  action,
  back,
}: {
  id: string;
  action: string;
  back: string;
}): PageContent {
  const page = {
    title: "End a certificate of your organisation",
    about:
      "Ends it with the access that was obtained with it. This cannot be undone: svc refuses the certificate from then on, and its holder needs another one.",
    button: "End",
    isDangerous: true,
    fields: [{ name: "sign_in", label: "", kind: "hidden" as const, value: id }],
  };
  return { title: page.title, content: <FormPage {...page} action={action} back={back} /> };
}

/** A table of sign-ins, each with a button that ends it. The button of a certificate of an organisation asks first. */
export function SignIns({
  items,
  action,
  hasUser = false,
}: {
  items: readonly SignIn[];
  action: string;
  hasUser?: boolean;
}) {
  if (items.length === 0) return <p class="empty">No sign-ins.</p>;
  return (
    <>
      <Table columns={[["What"], ["Since"], ["Until", "wide"], ["End", "num"]]}>
        {items.map(({ id, kind, user, isAdmin, isCurrent, createdAt, expiresAt, serial }) => (
          <tr key={id}>
            <td dir="auto">
              {hasUser && (
                <>
                  <bdi>{user}</bdi>,{" "}
                </>
              )}
              {kind === "organisation certificate" ? "certificate of your organisation" : kind}
              {isCurrent && " (this one)"}
              {isAdmin && <span class="quiet">, admin</span>}
              {serial && <small class="quiet block">{serial}</small>}
            </td>
            <td class="keep">
              <Clock at={createdAt} />
            </td>
            <td class="wide keep">
              <Clock at={expiresAt} />
            </td>
            <td class="num">
              <RowForm
                action={action}
                name={kind === "organisation certificate" ? "certificate" : "sign_in"}
                value={id}
                button="End"
                label={`End ${kind} of ${user}`}
              />
            </td>
          </tr>
        ))}
      </Table>
      <p class="quiet">
        Ending one leaves the sign-in at the provider, where its browser may get a new one without a password.
      </p>
    </>
  );
}
