import { expect, test } from "bun:test";
import { render } from "preact-render-to-string";
import { Markdown } from "./markdown.tsx";

const htmlOf = (text: string) => render(<Markdown text={text} />).replace(/^<div[^>]*>|<\/div>$/g, "");

test("the marks that people use become elements", () => {
  expect(htmlOf("# Plan\n\n**Now**, _soon_ and `x<y`\n\n- [x] done\n- [ ] open\n\n> said")).toBe(
    "<h2>Plan</h2><p><strong>Now</strong>, <em>soon</em> and <code>x&lt;y</code></p>" +
      "<ul><li>☑ done</li><li>☐ open</li></ul><blockquote><p>said</p></blockquote>",
  );
  expect(htmlOf("- [ ] one\n\n- [x] two\n\n  more\n- three")).toBe(
    "<ul><li><p>☐ one</p></li><li><p>☑ two</p><p>more</p></li><li><p>three</p></li></ul>",
  );
  expect(htmlOf("See https://example.com/a?b=1&c")).toContain('<a href="https://example.com/a?b=1&amp;c"');
});

test.each([
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "a <b onclick=x>b</b>",
  "`<i>`",
  '```js"><script>\n<script>x</script>\n```',
  "[x](javascript:alert(1))",
  "[x](&#x6a;avascript:alert(1))",
  "[x](java\nscript:alert(1))",
  "[x](data:text/html,<script>)",
  "[x](vbscript:x)",
  "<javascript:alert(1)>",
  '[y](https://a.b/"onmouseover="x)',
  '[y](https://a.b "title"onmouseover="x")',
  "![x](https://evil.example/x.png)",
  "![<img src=x onerror=y>](javascript:x)",
  "| <i> |\n|---|\n| <script> |",
  "&lt;script&gt; &#60;script&#62;",
  "[ref]: javascript:alert(1)\n\n[ref] [a][ref]",
  "<!-- --><svg/onload=x>",
  "<div>\n<style>@import 'https://evil.example'</style>\n</div>",
])("%s makes no element, attribute or address of its own", (text) => {
  const found: string[] = [];
  new HTMLRewriter()
    .on("*", {
      element(element) {
        const allowed =
          /^(h[2-6]|p|blockquote|pre|code|ul|ol|li|hr|div|table|thead|tbody|tr|th|td|strong|em|s|a)$/;
        if (!allowed.test(element.tagName)) found.push(element.tagName);
        for (const [name, value] of element.attributes)
          if (!(name === "href" ? /^(https?:|mailto:)/.test(value) : /^(rel|tabindex|class|dir)$/.test(name)))
            found.push(`${name}=${value}`);
      },
    })
    .transform(htmlOf(text));
  expect(found).toEqual([]);
});
