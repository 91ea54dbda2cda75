import type { ComponentChildren } from "preact";
import type { Revision } from "../../core/incident/event/revisions.ts";
import type { IncidentDetail } from "../../core/incident/incident/get.ts";
import type { Action } from "../incident/actions.ts";
import type { Remains } from "../incident/redaction.ts";
import { Form, type Field } from "../parts/form.tsx";
import { nameOf } from "../parts/person.tsx";
import { Text } from "../parts/text.tsx";
import { Clock } from "../parts/time.tsx";
import { app, documentPath, incidentPath, signInAddress } from "../paths.ts";

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
  citedBy = [],
  fields,
  trouble,
}: {
  incident: IncidentDetail;
  name: string;
  action: Action;
  citedBy?: Remains["documents"];
  fields: readonly Field[];
  trouble?: Trouble;
}) {
  const path = incidentPath(incident.id);
  const { title, about, button, isDangerous } = action;
  const page = { title, about, button, isDangerous, fields, trouble };
  return (
    <FormPage {...page} crumb={<Crumb of={incident} />} action={`${path}/${name}`} back={path}>
      <CitingDocuments documents={citedBy} />
    </FormPage>
  );
}

export function Crumb({ of: { id, name, title } }: { of: IncidentDetail }) {
  return (
    <p class="crumb">
      <a href={incidentPath(id)}>
        <span class="name">{name}</span> <bdi>{title}</bdi>
      </a>
    </p>
  );
}

/** A form that is a page of its own, about what `children` show. */
export function FormPage({
  crumb,
  title,
  about,
  button,
  isDangerous,
  action,
  back,
  fields,
  trouble,
  children,
}: {
  crumb?: ComponentChildren;
  title: string;
  about?: string;
  button: string;
  isDangerous?: boolean;
  action: string;
  /** Where Cancel leads. */
  back?: string;
  fields: readonly Field[];
  trouble?: Trouble;
  children?: ComponentChildren;
}) {
  return (
    <div class="narrow">
      {crumb}
      <h1>{title}</h1>
      {about && <p class="quiet">{about}</p>}
      {children}
      <Alert trouble={trouble} />
      <Form action={action} fields={fields}>
        <button type="submit" class={isDangerous ? "danger" : "primary"}>
          {button}
        </button>
        {back && <a href={back}>Cancel</a>}
      </Form>
    </div>
  );
}

export function CitingDocuments({ documents }: Pick<Remains, "documents">) {
  if (documents.length === 0) return null;
  return (
    <section class="list">
      <h2>Documents that may have its words</h2>
      <p class="quiet">Edit each so that it no longer has them, then redact its versions that had them.</p>
      <ul>
        {documents.map(({ id, name }) => (
          <li key={id}>
            <a href={documentPath(id)}>
              <bdi>{name}</bdi>
            </a>
            <span>
              <a href={`${documentPath(id)}/edit`}>Edit</a>{" "}
              <a href={`${documentPath(id)}/versions`}>Versions</a>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What an admin does after a redaction. */
export function RemainsPage({
  incident,
  entry,
  of,
}: {
  incident: IncidentDetail;
  entry: number;
  of: Remains;
}) {
  return (
    <div class="narrow">
      <Crumb of={incident} />
      <h1>Redacted</h1>
      <p class="quiet">
        The text of <a href={`${incidentPath(incident.id)}?at=${entry}#event-${entry}`}>this entry</a> is no
        longer in the database. Backups that were made before still have it.
      </p>
      {of.plugins.length > 0 && (
        <section class="list">
          <h2>Plugins that were sent the text</h2>
          <p class="quiet">Remove it there, too.</p>
          <ul>
            {of.plugins.map((slug) => (
              <li key={slug}>{slug}</li>
            ))}
          </ul>
        </section>
      )}
      <CitingDocuments documents={of.documents} />
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
      <Crumb of={incident} />
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

/** What was sent while nobody was signed in, or by a page of an earlier sign-in, or may be done in spite of `trouble`. */
export function KeptPage({
  path,
  fields,
  isSignedIn,
  trouble,
}: {
  path: string;
  fields: ReadonlyMap<string, string>;
  isSignedIn: boolean;
  trouble?: Trouble;
}) {
  const sent = [...fields].filter(([name]) => name !== "csrf" && name !== "key");
  const place = path.match(/^\/app\/((incidents|documents)\/\d+|access|admin(\/\w+)?)/)?.[0] ?? app;
  return (
    <div class="narrow">
      <h1>
        {trouble
          ? "It is not known yet whether this is stored"
          : isSignedIn
            ? "Send it again?"
            : "You are no longer signed in"}
      </h1>
      {trouble ? (
        <p>
          {trouble.detail}. Send it again, or{" "}
          <a href={place} target="_blank">
            look first whether it is there
          </a>
          . However often you send it, it is done once.
        </p>
      ) : isSignedIn ? (
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
        sent={fields}
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
