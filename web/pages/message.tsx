import { answer, Document } from "../document.tsx";
import { app } from "../paths.ts";

/** A page that only says something. */
export function Message({
  title,
  detail,
  link = [app, "To the board"],
}: {
  title: string;
  detail: string;
  link?: readonly [string, string];
}) {
  return (
    <div class="narrow">
      <h1>{title}</h1>
      <p>{detail}.</p>
      <p>
        <a href={link[0]}>{link[1]}</a>
      </p>
    </div>
  );
}

/** The page for somebody who may not be signed in. */
export function messagePage(
  message: { title: string; detail: string; link?: readonly [string, string] },
  options?: Parameters<typeof answer>[1],
): Response {
  return answer(
    <Document title={message.title} reader={null}>
      <Message {...message} />
    </Document>,
    options,
  );
}
