import type { ComponentChildren } from "preact";
import { type AnswerOptions, answer } from "../document.tsx";
import { app } from "../paths.ts";

/** A page with one card and without a script, for somebody who may not be signed in. */
export function cardPage(title: string, children: ComponentChildren, options?: AnswerOptions): Response {
  const card = (
    <div class="card">
      <h1>{title}</h1>
      {children}
    </div>
  );
  return answer({ title, reader: null, children: card }, options);
}

/** A page that only says something, and leads on. An empty address in `link` asks for the same page again. */
export function messagePage(
  {
    title,
    detail,
    link: [address, label] = [app, "To the board"],
    children,
  }: {
    title: string;
    /** A sentence without its full stop. */
    detail: string;
    link?: readonly [address: string, label: string];
    children?: ComponentChildren;
  },
  options?: AnswerOptions,
): Response {
  return cardPage(
    title,
    <>
      <p>{detail}.</p>
      <p>
        <a class="button" href={address}>
          {label}
        </a>
      </p>
      {children}
    </>,
    options,
  );
}
