import { useContext } from "preact/hooks";
import { Reader } from "./reader.ts";

/** Somebody: initials, and the name. `you` for the reader. */
export function Person({ email, name }: { email: string; name?: string | null }) {
  const { user } = useContext(Reader);
  const shown = email === user ? "you" : (name ?? nameOf(email));
  return (
    <span class="person" title={email}>
      <Initials of={name ?? nameOf(email)} />
      <bdi>{shown}</bdi>
    </span>
  );
}

/** Two letters that stand for a person. */
export function Initials({ of }: { of: string }) {
  const words = of.split(/[\s._-]+/).filter((word) => /\p{L}|\p{N}/u.test(word));
  const letters = [words[0], words.length > 1 ? words.at(-1) : words[0]?.slice(1)]
    .map((word) => [...(word ?? "")][0] ?? "")
    .join("");
  return (
    <span class="who" aria-hidden="true">
      {letters.toUpperCase()}
    </span>
  );
}

/** What the reader calls the actor of an event. */
export function useName(actor: string): string {
  const { user, names } = useContext(Reader);
  return actor === user ? "You" : (names.get(actor) ?? nameOf(actor));
}

/** A short name for somebody of whom the page knows only the user name. */
export function nameOf(actor: string): string {
  return actor === "system" || actor === "worker" ? "svc" : actor.replace(/@.*$/, "");
}
