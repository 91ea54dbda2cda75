import { type Html, html } from "../page/html.ts";
import { pageHeaders } from "../page/page.ts";
import type { Answer, OpenApiDocument, Operation, Parameter, Schema } from "./types.ts";

/** The document as a page for people. It needs no script: the browser itself folds long parts. */
export function openApiPage(document: OpenApiDocument): Response {
  const { info, paths, tags, components } = document;
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation })),
  );
  const text = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>API · svc</title>
        <link rel="icon" href="/icon.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="/style.css" />
      </head>
      <body class="reference">
        <header>
          <p class="brand"><span class="mark" aria-hidden="true"></span>svc ${info.version}</p>
          <h1>API</h1>
          ${info.description.split("\n\n").map((paragraph) => html`<p>${prose(paragraph)}</p>`)}
          <p>The same for programs: <a href="/openapi/json">OpenAPI ${document.openapi}</a></p>
        </header>
        <nav aria-label="Resources">
          <ul>
            ${tags.map(({ name }) => html`<li><a href="#${anchor(name)}">${name}</a></li>`)}
            <li><a href="#schemas">Schemas</a></li>
          </ul>
        </nav>
        <main>
          ${tags.map(
            ({ name }) =>
              html`<section aria-labelledby="${anchor(name)}">
                <h2 id="${anchor(name)}">${name}</h2>
                ${operations.filter(({ operation }) => operation.tags?.includes(name)).map(operationOf)}
              </section>`,
          )}
          <section aria-labelledby="schemas">
            <h2 id="schemas">Schemas</h2>
            ${Object.entries(components.schemas).map(
              ([name, schema]) =>
                html`<details>
                  <summary><b>${name}</b></summary>
                  <div id="${name}">${fieldsOf(schema)}</div>
                </details>`,
            )}
          </section>
        </main>
      </body>
    </html> `;
  return new Response(text.text, { headers: pageHeaders });
}

const anchor = (name: string) => name.toLowerCase().replaceAll(" ", "-");

/** Renders `code` and **strong** of Markdown, which is all that our descriptions use. */
function prose(text: string): Html[] {
  return text
    .split(/(`[^`]+`|\*\*[^*]+\*\*)/)
    .map((part) =>
      part.startsWith("`")
        ? html`<code>${part.slice(1, -1)}</code>`
        : part.startsWith("**")
          ? html`<strong>${part.slice(2, -2)}</strong>`
          : html`${part}`,
    );
}

function operationOf({
  method,
  path,
  operation,
}: {
  method: string;
  path: string;
  operation: Operation;
}): Html {
  const { summary = "", description, parameters = [], requestBody, responses, security } = operation;
  const body = requestBody?.content["application/json"]?.schema;
  return html`<details id="${operation.operationId ?? ""}">
    <summary>
      <span class="method ${method}">${method.toUpperCase()}</span> <code>${path}</code>
      <span>${summary}</span>
    </summary>
    ${description ? html`<p>${prose(description)}</p>` : ""}
    ${security?.length === 0 ? html`<p>Needs no token.</p>` : ""}
    ${parameters.length > 0 ? table("Parameters", parameters.map(parameterRow)) : ""}
    ${
      body
        ? html`<h3>Body</h3>
            ${fieldsOf(body)}`
        : ""
    }
    ${table("Answers", Object.entries(responses).map(answerRow))}
  </details>`;
}

function table(title: string, rows: Html[]): Html {
  return html`<h3>${title}</h3>
    ${wide(title, rows)}`;
}

/** A table that scrolls in narrow windows. It is focusable, so that the keyboard can scroll it, too. */
function wide(title: string, rows: Html[]): Html {
  return html`<div class="wide" role="group" aria-label="${title}" tabindex="0">
    <table>
      ${rows}
    </table>
  </div>`;
}

function parameterRow({ name, in: where, required, description = "", schema }: Parameter): Html {
  return html`<tr>
    <th scope="row"><code>${name}</code></th>
    <td>${where}${required ? ", required" : ""}</td>
    <td>${kindOf(schema)}</td>
    <td>${prose(description)}</td>
  </tr>`;
}

function answerRow([status, { description, content }]: [string, Answer]): Html {
  const schema = Object.values(content ?? {})[0]?.schema;
  return html`<tr>
    <th scope="row">${status}</th>
    <td>${schema ? kindOf(schema) : ""}</td>
    <td>${prose(description)}</td>
  </tr>`;
}

/** Lists the fields of an object, or describes another type. */
function fieldsOf(schema: Schema): Html {
  const { properties, required = [] } = schema;
  if (!properties) return html`<p>${kindOf(schema)}</p>`;
  const rows = Object.entries(properties).map(
    ([name, field]) =>
      html`<tr>
        <th scope="row"><code>${name}</code></th>
        <td>${required.includes(name) ? "" : "optional"}</td>
        <td>${kindOf(field)}</td>
        <td>${prose(field.description ?? "")}</td>
      </tr>`,
  );
  return wide("Fields", rows);
}

/** Describes a schema in a few words, with a link if it is named. */
function kindOf(schema: Schema): Html {
  if (schema.$ref) {
    const name = schema.$ref.split("/").at(-1)!;
    return html`<a href="#${name}">${name}</a>`;
  }
  if (schema.enum) return html`${schema.enum.map(String).join(" | ")}`;
  if (schema.const !== undefined) return html`${String(schema.const)}`;
  if (schema.anyOf) return html`${schema.anyOf.map((one, at) => html`${at > 0 ? " | " : ""}${kindOf(one)}`)}`;
  if (schema.type === "array" && schema.items) return html`list of ${kindOf(schema.items)}`;
  if (schema.type === "object" && schema.properties) return fieldsOf(schema);
  const kinds = [schema.type ?? "anything"].flat().join(" | ");
  const notes = [
    schema.format,
    range(schema.minimum, schema.maximum),
    schema.maxLength === undefined ? undefined : `at most ${schema.maxLength} characters`,
  ].filter(Boolean);
  return html`${kinds}${notes.length > 0 ? ` (${notes.join(", ")})` : ""}`;
}

function range(minimum: unknown, maximum: unknown): string | undefined {
  if (minimum === undefined) return undefined;
  return maximum === undefined || Number(maximum) > 1e9 ? `from ${minimum}` : `${minimum} to ${maximum}`;
}
