import { Value } from "@sinclair/typebox/value";
import { Elysia, type Static } from "elysia";
import type { ComponentChildren } from "preact";
import { checkRole } from "../../core/access/check.ts";
import { getRole, listRoles, type Role } from "../../core/access/role.ts";
import { createRole, removeRole, updateRole } from "../../core/access/role_change.ts";
import { parseRoleFile } from "../../core/access/role_file.ts";
import type { Actor } from "../../core/context.ts";
import { durationText } from "../../platform/duration.ts";
import { Conflict, InvalidInput, NotFound, SvcError } from "../../platform/errors.ts";
import { withTimeLimit } from "../../platform/time_limit.ts";
import { changedRole, newRole, roleFieldsOf } from "../../server/access/model.ts";
import type { Deps } from "../../server/deps.ts";
import { fromDatabase, violationOf } from "../../server/http/error.ts";
import { largestBytes } from "../../server/http/size.ts";
import { mostChoices } from "../incident/choices.ts";
import { Alert, FormPage, type Trouble } from "../pages/forms.tsx";
import { type Field, Form, FormKeys } from "../parts/form.tsx";
import { Clock } from "../parts/time.tsx";
import { adminPath } from "../paths.ts";
import type { PageContent, Site, Visit } from "../site.tsx";
import { admins, adminsSubmit, Crumb, Table } from "./shared.tsx";

const path = `${adminPath}/roles`;
/** As many as a list of the API has: each is a transaction, and the user waits for all. */
const mostRoles = 100;
/** Less than a page waits for anything. A target may take longer. */
const checkMilliseconds = 3000;

const fileField: Field = {
  name: "text",
  label: "A role or a list of roles in YAML or JSON",
  kind: "text",
  isRequired: true,
  help: "As svc access apply reads it. Omitted fields get their defaults. An omitted secret of an existing role keeps its value",
};

/** What a form asks before it changes a role. Enabling is asked about only if it was refused. */
const questions = {
  delete: { verb: "Delete", button: "Delete permanently", isDangerous: true },
  disable: {
    verb: "Disable",
    about: "Nobody gets it then, and its leases end.",
    button: "Disable",
    isDangerous: true,
  },
  enable: { verb: "Enable", button: "Enable" },
};

/** `unknown` if the target has not answered in time. */
type Check = Awaited<ReturnType<typeof checkRole>> | "unknown";

/** What admins set: who gets which credentials. The page Access has what a user may request. */
export function rolePages(site: Site) {
  const { deps } = site;

  async function list(
    { visitor, url }: Visit,
    { fields = [fileField], trouble }: { fields?: readonly Field[]; trouble?: Trouble } = {},
  ): Promise<PageContent> {
    const cursor = url.searchParams.get("cursor") ?? undefined;
    const { items, next_cursor } = await listRoles(deps, visitor.actor, { limit: mostChoices, cursor });
    const content = (
      <>
        <Crumb />
        <h1>Access roles</h1>
        <Roles roles={items} />
        {next_cursor && <a href={`${path}?cursor=${encodeURIComponent(next_cursor)}`}>More</a>}
        <h2>Apply a file</h2>
        <Alert trouble={trouble} />
        <Form action={path} fields={fields}>
          <button type="submit" class="primary">
            Apply
          </button>
        </Form>
      </>
    );
    return { title: "Access roles", content, here: "admin" };
  }

  const apply = adminsSubmit(site, async (visit, values) => ({
    // It would otherwise keep a digest of the text, which has secrets. Applying a file again changes nothing else.
    isVersioned: true,
    run: async (context) => {
      const slugs = await applyRoles(context, visit.visitor.actor, values.text("text"));
      return slugs.length === 1 ? `${path}/${slugs[0]}` : path;
    },
    again: (fill) => list(visit, fill([fileField])),
  }));

  const roleOf = ({ visitor, params }: Visit) => getRole(deps, visitor.actor, params.role!);

  async function view(visit: Visit, check?: Check): Promise<PageContent> {
    const role = await roleOf(visit);
    return { title: role.slug, content: <One role={role} check={check} />, here: "admin" };
  }

  const check = adminsSubmit(site, async (visit) => {
    const slug = visit.params.role!;
    const checking = checkRole(deps, visit.visitor.actor, slug).catch((error: unknown): Check => {
      // Its plugin is not enabled.
      if (error instanceof Conflict) return { problems: [{ problem: error.detail }] };
      throw error;
    });
    return view(visit, (await withTimeLimit(checkMilliseconds, checking)) ?? "unknown");
  });

  async function asking(visit: Visit, step: keyof typeof questions, trouble?: Trouble): Promise<PageContent> {
    const { slug } = await roleOf(visit);
    const { verb, ...question } = questions[step];
    const title = `${verb} ${slug}?`;
    const back = `${path}/${slug}`;
    const form = { title, action: `${back}/${step}`, back, fields: [], trouble, ...question };
    return { title, content: <FormPage crumb={<Crumb />} {...form} />, here: "admin" };
  }

  const remove = adminsSubmit(site, async (visit) => ({
    run: async (context) => {
      await removeRole(context, visit.visitor.actor, visit.params.role!);
      return path;
    },
    again: (fill) => asking(visit, "delete", fill([]).trouble),
  }));

  const change = (step: "disable" | "enable") =>
    adminsSubmit(site, async (visit) => ({
      run: async (context) => {
        const { actor } = visit.visitor;
        const { slug, version, pluginSlug, settings, ...role } = await getRole(
          context,
          actor,
          visit.params.role!,
        );
        const disabled = step === "disable";
        const fields = { ...role, slug, plugin: pluginSlug, settings: settings ?? {}, disabled };
        await updateRole(context, actor, { slug, version, fields });
        return `${path}/${slug}`;
      },
      again: (fill) => asking(visit, step, fill([]).trouble),
    }));

  return new Elysia({ name: "role pages", prefix: "/roles" })
    .get(
      "/",
      admins(site, (visit) => list(visit)),
    )
    .post("/", apply)
    .get(
      "/:role",
      admins(site, (visit) => view(visit)),
    )
    .post("/:role/check", check)
    .get(
      "/:role/delete",
      admins(site, (visit) => asking(visit, "delete")),
    )
    .post("/:role/delete", remove)
    .get(
      "/:role/disable",
      admins(site, (visit) => asking(visit, "disable")),
    )
    .post("/:role/disable", change("disable"))
    .post("/:role/enable", change("enable"));
}

/**
 * Creates or replaces the roles of a file in order, with the checks of the API. Those before a failure stay applied.
 *
 * @returns their slugs
 * @throws SvcError, which names the role that failed and those applied before it
 */
async function applyRoles(context: Deps, actor: Actor, text: string): Promise<string[]> {
  if (Buffer.byteLength(text) > largestBytes) throw new InvalidInput("text", "The text is longer than 1 MiB");
  const roles = parseRoleFile(text, "The text");
  if (roles.length > mostRoles) throw new InvalidInput("text", `Apply at most ${mostRoles} roles at once`);
  const done: string[] = [];
  for (const role of roles) {
    const name = /^[\w-]{1,60}$/.test(role.slug) ? role.slug : `role ${done.length + 1} of the text`;
    try {
      done.push(`${role.slug} ${await applyRole(context, actor, role)}`);
    } catch (error) {
      const { code, detail } =
        error instanceof SvcError
          ? error
          : (fromDatabase(error) ?? { code: "internal", detail: "Unexpected error" });
      const before = done.length > 0 ? `. Applied before it: ${done.join(", ")}` : "";
      // Not of its class: a role that was changed meanwhile is one of many, and the form has no version of it.
      throw new SvcError(code, `${name}: ${detail}${before}`, { cause: error });
    }
  }
  return roles.map(({ slug }) => slug);
}

async function applyRole(
  context: Deps,
  actor: Actor,
  role: Record<string, unknown> & { slug: string },
): Promise<"created" | "updated"> {
  const isSlug = Value.Check(newRole.properties.slug, role.slug);
  const known = isSlug ? await knownRole(context, actor, role.slug) : undefined;
  const body = known ? { ...role, version: known.version } : role;
  const broken = Value.Errors(known ? changedRole : newRole, body).First();
  if (broken) throw violationOf(broken as Parameters<typeof violationOf>[0]);
  const fields = roleFieldsOf(body as Static<typeof newRole>);
  if (!known) await createRole(context, actor, fields);
  else await updateRole(context, actor, { slug: role.slug, version: known.version, fields });
  return known ? "updated" : "created";
}

const knownRole = (context: Deps, actor: Actor, slug: string) =>
  getRole(context, actor, slug).catch((error: unknown) => {
    if (error instanceof NotFound) return undefined;
    throw error;
  });

const requestedBy = ({ groups }: Role) =>
  groups.includes("*") ? "every user" : groups.join(", ") || "nobody: no groups";
const approvedBy = ({ approval, approverGroups, approvalsNeeded }: Role) =>
  approval === "none"
    ? "without approval"
    : `${approval === "group" ? approverGroups.join(", ") : approval}${approvalsNeeded > 1 ? `, ${approvalsNeeded} users` : ""}`;
const lengthText = (seconds: number) => durationText(new Date(0), new Date(seconds * 1000));

function Roles({ roles }: { roles: readonly Role[] }) {
  if (roles.length === 0) return <p class="empty">None yet.</p>;
  return (
    <Table columns={[["Role"], ["Groups"], ["Approval", "wide"], ["Changed", "wide"]]}>
      {roles.map((role) => (
        <tr key={role.slug}>
          <td>
            <a href={`${path}/${role.slug}`} data-row>
              {role.slug}
            </a>{" "}
            <span class="name">{role.pluginSlug}</span>
            {role.disabledAt && <small class="late block">disabled</small>}
          </td>
          <td dir="auto">{requestedBy(role)}</td>
          <td class="wide" dir="auto">
            {approvedBy(role)}
          </td>
          <td class="wide keep">
            <Clock at={role.updatedAt} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function One({ role, check }: { role: Role; check: Check | undefined }) {
  const facts: [string, ComponentChildren][] = [
    ["Plugin", role.pluginSlug],
    ["Groups", requestedBy(role)],
    ["Approval", approvedBy(role)],
    ["Duration", `${lengthText(role.defaultDuration)}, at most ${lengthText(role.maxDuration)}`],
    ["Incident", role.incidentRequired ? "required" : "not required"],
    ["Break glass", role.breakGlass ? "allowed" : "not allowed"],
    ["Changed", <Clock at={role.updatedAt} />],
    ...Object.entries(role.settings ?? {}).map(([key, value]): [string, string] => [key, String(value)]),
  ];
  return (
    <div class="narrow">
      <p class="crumb">
        <a href={path}>Access roles</a>
      </p>
      <h1>{role.slug}</h1>
      {role.disabledAt && <p class="late">Disabled: nobody gets it, and its leases end.</p>}
      <p dir="auto">{role.description}</p>
      {check === "unknown" ? (
        <p role="status">
          It is not known whether it can issue credentials: no answer within {checkMilliseconds / 1000} s.{" "}
          <code>svc access check {role.slug}</code> waits longer.
        </p>
      ) : (
        check && <Problems {...check} />
      )}
      <dl class="facts">
        {facts.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd dir="auto">{value}</dd>
          </>
        ))}
      </dl>
      <p class="quiet">Secrets are not shown. Apply a file to change the role.</p>
      <div class="row">
        <form method="post" action={`${path}/${role.slug}/check`}>
          <FormKeys />
          <button type="submit">Check</button>
        </form>
        {role.disabledAt ? (
          <form method="post" action={`${path}/${role.slug}/enable`}>
            <FormKeys />
            <button type="submit">Enable</button>
          </form>
        ) : (
          <a href={`${path}/${role.slug}/disable`}>Disable</a>
        )}
        <a href={`${path}/${role.slug}/delete`}>Delete</a>
      </div>
    </div>
  );
}

function Problems({ problems }: Exclude<Check, "unknown">) {
  const isUsable = problems.every(({ warning }) => warning);
  return (
    <div class={isUsable ? undefined : "alert"} role={isUsable ? "status" : "alert"}>
      <p>{isUsable ? "It can issue credentials." : "It cannot issue credentials."}</p>
      {problems.length > 0 && (
        <ul>
          {problems.map(({ problem, fix, warning }) => (
            <li key={problem} dir="auto">
              {warning && "Warning: "}
              {problem}
              {fix && `. ${fix}`}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
