/** Of a longer text only the beginning is laid out. */
const longest = 200_000;

const safe = (text: string) => Bun.escapeHTML(text);
const within = (tag: string) => (children: string) => `<${tag}>${children}</${tag}>`;

/**
 * Markdown that somebody wrote, as HTML that this file makes: elements of a fixed list, without their HTML, images and
 * addresses that are not of the web. Bun's parser takes time in proportion to the text, whatever it is; other ones take
 * minutes for some texts.
 */
export function Markdown({ text }: { text: string }) {
  const html = Bun.markdown.render(
    text.slice(0, longest),
    {
      text: safe,
      heading: (children, { level }) => within(`h${Math.min(level + 1, 6)}`)(children),
      paragraph: within("p"),
      blockquote: within("blockquote"),
      code: (children) => `<pre tabindex="0"><code>${children}</code></pre>`,
      codespan: within("code"),
      list: (children, { ordered }) => within(ordered ? "ol" : "ul")(children),
      listItem: (children, { checked }) => {
        const box = checked === undefined ? "" : checked ? "☑ " : "☐ ";
        // Of a list with blank lines, each item is a paragraph.
        return `<li>${children.replace(/^(<p>)?/, `$&${box}`)}</li>`;
      },
      hr: () => "<hr>",
      table: (children) => `<div class="scrolls" tabindex="0"><table>${children}</table></div>`,
      thead: within("thead"),
      tbody: within("tbody"),
      tr: within("tr"),
      th: within("th"),
      td: within("td"),
      strong: within("strong"),
      emphasis: within("em"),
      strikethrough: within("s"),
      link: (children, { href }) =>
        /^(https?:\/\/|mailto:)/i.test(href)
          ? `<a href="${safe(href)}" rel="noreferrer nofollow">${children}</a>`
          : children,
      // Only its description: the page loads nothing from elsewhere.
      image: (children) => children,
      html: safe,
    },
    { autolinks: true, noHtmlBlocks: true, noHtmlSpans: true },
  );
  // The only HTML of the pages that is not made by Preact. web/parts/markdown.test.ts attacks it.
  return (
    <>
      {/* biome-ignore lint/security/noDangerouslySetInnerHtml: every text in it went through `safe` */}
      <div class="markdown" dir="auto" dangerouslySetInnerHTML={{ __html: html }} />
      {text.length > longest && (
        <p class="quiet">
          Only the first {longest.toLocaleString("en")} of {text.length.toLocaleString("en")} characters are
          shown.
        </p>
      )}
    </>
  );
}
