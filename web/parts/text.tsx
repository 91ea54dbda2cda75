/** An address in a text, without the punctuation after it. */
const address = /https?:\/\/[^\s<>"]+[^\s<>".,;:!?)\]}']/g;

/** What somebody wrote: with its line breaks, in its own direction, and its addresses as links. */
export function Text({ of }: { of: string }) {
  const parts = [];
  let at = 0;
  for (const match of of.matchAll(address)) {
    parts.push(
      of.slice(at, match.index),
      <a key={match.index} href={match[0]} rel="noreferrer nofollow">
        {match[0]}
      </a>,
    );
    at = match.index + match[0].length;
  }
  return (
    <p class="text" dir="auto">
      {parts}
      {of.slice(at)}
    </p>
  );
}
