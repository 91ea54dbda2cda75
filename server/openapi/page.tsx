import { type ComponentChildren, Fragment, type VNode } from "preact";
import { answer } from "../../web/document.tsx";
import type { OpenApiDocument, Operation, Parameter, Schema } from "./types.ts";

/** The document as a page for people. It needs no script: the browser itself folds long parts. */
export function openApiPage(document: OpenApiDocument): Response {
  const { info, paths, tags, components } = document;
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation })),
  );
  return answer({
    title: "API",
    reader: null,
    children: (
      <div class="reference">
        <header>
          <h1>API</h1>
          <p class="quiet">svc {info.version}</p>
          {info.description.split("\n\n").map((paragraph) => (
            <p key={paragraph}>
              <Prose of={paragraph} />
            </p>
          ))}
          <p>
            The same for programs: <a href="/openapi/json">OpenAPI {document.openapi}</a>
          </p>
        </header>
        <nav aria-label="Resources">
          <ul>
            {[...tags.map(({ name }) => name), "Schemas"].map((name) => (
              <li key={name}>
                <a href={`#${anchor(name)}`}>{name}</a>
              </li>
            ))}
          </ul>
        </nav>
        <div>
          {tags.map(({ name }) => (
            <section key={name} aria-labelledby={anchor(name)}>
              <h2 id={anchor(name)}>{name}</h2>
              {operations
                .filter(({ operation }) => operation.tags?.includes(name))
                .map((one) => (
                  <OperationDetails key={`${one.method} ${one.path}`} {...one} />
                ))}
            </section>
          ))}
          <section aria-labelledby="schemas">
            <h2 id="schemas">Schemas</h2>
            {Object.entries(components.schemas).map(([name, schema]) => (
              <details key={name}>
                <summary>
                  <b>{name}</b>
                </summary>
                <div id={name}>
                  <Fields of={schema} />
                </div>
              </details>
            ))}
          </section>
        </div>
      </div>
    ),
  });
}

const anchor = (name: string) => name.toLowerCase().replaceAll(" ", "-");

/** `code` and **strong** of Markdown, which is all that our descriptions use. */
function Prose({ of }: { of: string }) {
  return of
    .split(/(`[^`]+`|\*\*[^*]+\*\*)/)
    .map((part) =>
      part.startsWith("`") ? (
        <code>{part.slice(1, -1)}</code>
      ) : part.startsWith("**") ? (
        <strong>{part.slice(2, -2)}</strong>
      ) : (
        part
      ),
    );
}

function OperationDetails({
  method,
  path,
  operation,
}: {
  method: string;
  path: string;
  operation: Operation;
}) {
  const { operationId, summary, description, parameters = [], requestBody, responses, security } = operation;
  const body = requestBody?.content["application/json"]?.schema;
  return (
    <details id={operationId}>
      <summary>
        <span class="method">{method.toUpperCase()}</span> <code>{path}</code>{" "}
        <span class="quiet">{summary}</span>
      </summary>
      {description && (
        <p>
          <Prose of={description} />
        </p>
      )}
      {security?.length === 0 && <p>Needs no token.</p>}
      {parameters.length > 0 && (
        <>
          <h3>Parameters</h3>
          <Table title="Parameters">
            {parameters.map((one) => (
              <ParameterRow key={one.name} {...one} />
            ))}
          </Table>
        </>
      )}
      {body && (
        <>
          <h3>Body</h3>
          <Fields of={body} />
        </>
      )}
      <h3>Answers</h3>
      <Table title="Answers">
        {Object.entries(responses).map(([status, { description, content }]) => {
          const schema = Object.values(content ?? {})[0]?.schema;
          return (
            <tr key={status}>
              <th scope="row">{status}</th>
              <td>{schema && <Kind of={schema} />}</td>
              <td>
                <Prose of={description} />
              </td>
            </tr>
          );
        })}
      </Table>
    </details>
  );
}

/** A table that scrolls in narrow windows. It is focusable, so that the keyboard can scroll it, too. */
function Table({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="scrolls" role="group" aria-label={title} tabIndex={0}>
      <table>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

function ParameterRow({ name, in: where, required, description = "", schema }: Parameter) {
  return (
    <tr>
      <th scope="row">
        <code>{name}</code>
      </th>
      <td>
        {where}
        {required && ", required"}
      </td>
      <td>
        <Kind of={schema} />
      </td>
      <td>
        <Prose of={description} />
      </td>
    </tr>
  );
}

/** The fields of an object, or another type. */
function Fields({ of }: { of: Schema }) {
  const { properties, required = [] } = of;
  if (!properties)
    return (
      <p>
        <Kind of={of} />
      </p>
    );
  return (
    <Table title="Fields">
      {Object.entries(properties).map(([name, field]) => (
        <tr key={name}>
          <th scope="row">
            <code>{name}</code>
          </th>
          <td>{!required.includes(name) && "optional"}</td>
          <td>
            <Kind of={field} />
          </td>
          <td>
            <Prose of={field.description ?? ""} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** A schema in a few words, with a link if it is named. */
function Kind({ of }: { of: Schema }): VNode {
  if (of.$ref) {
    const name = of.$ref.split("/").at(-1)!;
    return <a href={`#${name}`}>{name}</a>;
  }
  if (of.enum) return <>{of.enum.map(String).join(" | ")}</>;
  if (of.const !== undefined) return <>{String(of.const)}</>;
  if (of.anyOf)
    return (
      <>
        {of.anyOf.map((one, at) => (
          <Fragment key={at}>
            {at > 0 && " | "}
            <Kind of={one} />
          </Fragment>
        ))}
      </>
    );
  if (of.type === "array" && of.items)
    return (
      <>
        list of <Kind of={of.items} />
      </>
    );
  if (of.type === "object" && of.properties) return <Fields of={of} />;
  const kinds = [of.type ?? "anything"].flat().join(" | ");
  const notes = [
    of.format,
    range(of.minimum, of.maximum),
    of.maxLength === undefined ? undefined : `at most ${of.maxLength} characters`,
  ].filter(Boolean);
  return (
    <>
      {kinds}
      {notes.length > 0 && ` (${notes.join(", ")})`}
    </>
  );
}

function range(minimum: unknown, maximum: unknown): string | undefined {
  if (minimum === undefined) return undefined;
  return maximum === undefined || Number(maximum) > 1e9 ? `from ${minimum}` : `${minimum} to ${maximum}`;
}
