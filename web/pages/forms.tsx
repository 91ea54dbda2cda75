import type { ComponentChildren } from "preact";
import type { Revision } from "../../core/incident/event/revisions.ts";
import type { IncidentDetail } from "../../core/incident/incident/get.ts";
import type { Action } from "../incident/actions.ts";
import { Form, type Field } from "../parts/form.tsx";
import { nameOf } from "../parts/person.tsx";
import { Text } from "../parts/text.tsx";
import { Clock } from "../parts/time.tsx";
import { app, incidentPath, signInAddress } from "../paths.ts";

/** Why a form could not be done; what was written is in its fields. */
export interface Trouble {
  detail: string;
  /** What somebody else has changed meanwhile: label, the user's value, and the stored one. */
  conflicts?: readonly (readonly [string, string, string])[];
}

export function Alert({ trouble }: { trouble: Trouble | undefined }) {
  if (!trouble) return null;
  const { detail, conflicts = [] } = trouble;
  return (
    <div class="alert" role="alert" tabIndex={-1}>
      <p>{detail}.</p>
      {conflicts.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Yours</th>
              <th scope="col">Stored</th>
            </tr>
          </thead>
          <tbody>
            {conflicts.map(([label, yours, stored]) => (
              <tr key={label}>
                <th scope="row">{label}</th>
                <td dir="auto">{yours}</td>
                <td dir="auto">{stored}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

/** The form of an action of an incident. */
export function ActionPage({
  incident,
  name,
  action,
  fields,
  trouble,
}: {
  incident: IncidentDetail;
  name: string;
  action: Action;
  fields: readonly Field[];
  trouble?: Trouble;
}) {
  const path = incidentPath(incident.id);
  return (
    <div class="narrow">
      <p class="crumb">
        <a href={path}>
          <span class="name">{incident.name}</span> <bdi>{incident.title}</bdi>
        </a>
      </p>
      <h1>{action.title}</h1>
      {action.about && <p class="quiet">{action.about}</p>}
      <Alert trouble={trouble} />
      <Form action={`${path}/${name}`} fields={fields}>
        <button type="submit" class={action.isDangerous ? "danger" : "primary"}>
          {action.button}
        </button>
        <a href={path}>Cancel</a>
      </Form>
    </div>
  );
}

/** A form that is a page of its own, about what `children` show. */
export function FormPage({
  title,
  about,
  button,
  action,
  back,
  fields,
  trouble,
  children,
}: {
  title: string;
  about?: string;
  button: string;
  action: string;
  /** Where Cancel leads. */
  back?: string;
  fields: readonly Field[];
  trouble?: Trouble;
  children?: ComponentChildren;
}) {
  return (
    <div class="narrow">
      <h1>{title}</h1>
      {about && <p class="quiet">{about}</p>}
      {children}
      <Alert trouble={trouble} />
      <Form action={action} fields={fields}>
        <button type="submit" class="primary">
          {button}
        </button>
        {back && <a href={back}>Cancel</a>}
      </Form>
    </div>
  );
}

/** The earlier texts of an entry. */
export function HistoryPage({
  incident,
  revisions,
}: {
  incident: IncidentDetail;
  revisions: readonly Revision[];
}) {
  return (
    <div class="narrow">
      <p class="crumb">
        <a href={incidentPath(incident.id)}>
          <span class="name">{incident.name}</span> <bdi>{incident.title}</bdi>
        </a>
      </p>
      <h1>Earlier texts</h1>
      <ol class="timeline" reversed>
        {revisions.map(({ version, author, at, ...text }) => (
          <li key={version}>
            <span class="when">
              <Clock at={at} />
            </span>
            <div>
              <p class="by">
                <b>{nameOf(author)}</b>
              </p>
              {Object.values(text).map((part, index) => (
                <Text key={index} of={part} />
              ))}
            </div>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** What was sent while nobody was signed in, or by a page of an earlier sign-in. */
export function KeptPage({
  path,
  fields,
  isSignedIn,
}: {
  path: string;
  fields: ReadonlyMap<string, string>;
  isSignedIn: boolean;
}) {
  const sent = [...fields].filter(([name]) => name !== "csrf" && name !== "key");
  return (
    <div class="narrow">
      <h1>{isSignedIn ? "Send it again?" : "You are no longer signed in"}</h1>
      {isSignedIn ? (
        <p>You have signed in again since you opened that page. Nothing was stored yet.</p>
      ) : (
        <p>
          Nothing was stored yet.{" "}
          <a href={signInAddress(`${app}/signed_in`)} target="_blank">
            Sign in in another tab
          </a>
          , return to this one, and send it.
        </p>
      )}
      <Form
        action={path}
        fields={sent.map(([name, value]) => ({
          name,
          label: written[name] ?? name,
          kind: name in written ? "text" : "hidden",
          value,
        }))}
      >
        <button type="submit" class="primary">
          Send
        </button>
      </Form>
    </div>
  );
}

/** The fields that people write in. */
const written: Record<string, string> = {
  text: "Text",
  title: "Title",
  description: "Description",
  conditions: "Conditions",
  actions: "Actions",
  needs: "Needs",
  resolution: "Resolution",
};
